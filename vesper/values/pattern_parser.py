"""Parser from the text of a pattern to its tree. Raises `PatternProblem` outside the grammar of docs/spec/regex.md."""

from __future__ import annotations

from typing import NoReturn

from vesper.values.pattern import (
    CATEGORIES,
    MAX_CODE_POINTS,
    MAX_COUNT,
    MAX_GROUPS,
    MAX_INSTRUCTIONS,
    MAX_LEVELS,
    Alternation,
    Anchor,
    AnyPoint,
    Class,
    Escape,
    Group,
    Pattern,
    PatternPart,
    PatternProblem,
    Range,
    Repeat,
    Sequence,
    can_be_empty,
    instructions,
)

_DIGITS = "0123456789"
_HEX_DIGITS = _DIGITS + "abcdefABCDEF"
_NOT_LITERAL = "\\^$.|?*+()[]{}"
_REPEATS = "*+?{"
_SIMPLE_REPEATS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_CONTROL_ESCAPES = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
_CATEGORIES = frozenset({*CATEGORIES, *(name[0] for name in CATEGORIES)})
_SURROGATES = range(0xD800, 0xE000)
_LAST_CODE_POINT = 0x10FFFF
_UNSUPPORTED_GROUPS = {
    "(?=": "is no look-ahead", "(?!": "is no look-ahead", "(?<=": "is no look-behind", "(?<!": "is no look-behind",
    "(?<": "are no named groups", "(?P": "are no named groups", "(?'": "are no named groups",
    "(?>": "are no atomic groups", "(?#": "are no comments", "(?(": "are no conditions", "(?|": "are no branch resets",
}  # fmt: skip
"""Extensions of other dialects by their prefix; longer prefixes come first."""

_UNSUPPORTED_ESCAPES = {
    "A": "`\\A`: the start of the text is `^`", "Z": "`\\Z`: the end of the text is `$`",
    "z": "`\\z`: the end of the text is `$`", "k": "back-reference", "g": "back-reference", "h": "`\\h`",
    "R": "`\\R`", "X": "`\\X`", "K": "`\\K`", "Q": "`\\Q`", "E": "`\\E`", "G": "`\\G`", "N": "`\\N`",
}  # fmt: skip


def parse_pattern(text: str) -> Pattern:
    """Return the tree of a pattern within all limits, or raise `PatternProblem`."""
    if len(text) > MAX_CODE_POINTS:
        raise PatternProblem(f"it has more than {MAX_CODE_POINTS:,} code points", 0, len(text))
    return _Parser(text).pattern()


class _Parser:
    """Recursive-descent parser with one method per grammar rule; `_at` is the next code point."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._groups = 0
        self._levels = 0

    # -- reading ----------------------------------------------------------------------------------

    @property
    def _next(self) -> str:
        """Return the next code point; empty at the end."""
        return self._text[self._at : self._at + 1]

    def _take(self, expected: str) -> bool:
        if not self._text.startswith(expected, self._at):
            return False
        self._at += len(expected)
        return True

    def _take_while(self, allowed: str) -> str:
        start = self._at
        while self._next and self._next in allowed:
            self._at += 1
        return self._text[start : self._at]

    def _refuse(self, problem: str, start: int, end: int | None = None) -> NoReturn:
        raise PatternProblem(problem, start, max(self._at, start + 1) if end is None else end)

    # -- the whole --------------------------------------------------------------------------------

    def pattern(self) -> Pattern:
        flags = self._flags()
        root = self._alternation()
        if self._next == ")":
            self._refuse("there is no `(` for this `)`", self._at)
        count = instructions(root)
        if count > MAX_INSTRUCTIONS:
            self._refuse(f"it has {count:,} instructions, more than {MAX_INSTRUCTIONS:,}", 0, len(self._text))
        return Pattern(root, self._groups, "i" in flags, "s" in flags)

    def _flags(self) -> str:
        if not self._text.startswith("(?") or self._text[2:3] not in ("i", "s"):
            return ""
        self._at = 2
        flags = self._take_while("is")
        if len(set(flags)) < len(flags):
            self._refuse("a flag is given twice", 2)
        if not self._take(")"):
            self._refuse("the flags are `i` and `s`, ended by `)`", self._at)
        return flags

    def _alternation(self) -> PatternPart:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def _sequence(self) -> PatternPart:
        items: list[PatternPart] = []
        while self._next not in ("", "|", ")"):
            items.append(self._item())
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _item(self) -> PatternPart:
        start = self._at
        if self._next in _REPEATS:
            self._refuse(f"there is nothing for `{self._next}` to repeat", start, start + 1)
        anchor = self._anchor()
        if anchor is None:
            return self._repeat(self._atom(), start)
        if self._next and self._next in _REPEATS:
            self._refuse("an anchor cannot be repeated", start, self._at + 1)
        return anchor

    def _anchor(self) -> Anchor | None:
        for written, kind in (("^", "^"), ("$", "$"), ("\\b", "b"), ("\\B", "B")):
            if self._take(written):
                return Anchor(kind)
        return None

    # -- repetition -------------------------------------------------------------------------------

    def _repeat(self, content: PatternPart, start: int) -> PatternPart:
        at = self._at
        counts = self._counts()
        if counts is None:
            return content
        least, most = counts
        is_greedy = not self._take("?")
        if self._next == "+":
            self._refuse("there are no possessive repetitions", at, self._at + 1)
        if self._next and self._next in _REPEATS:
            self._refuse("a repetition cannot be repeated; put it in `(?:…)`", at, self._at + 1)
        if most is None and can_be_empty(content):
            self._refuse("an unbounded repetition can match the empty string", start)
        if most is None and self._text[at] == "{" and least > 0:
            rest = Repeat(content, 0, None, is_greedy)
            return Sequence((Repeat(content, least, least, is_greedy), rest))
        return Repeat(content, least, most, is_greedy)

    def _counts(self) -> tuple[int, int | None] | None:
        sign = self._next
        if sign in _SIMPLE_REPEATS:
            self._at += 1
            return _SIMPLE_REPEATS[sign]
        if sign != "{":
            return None
        start = self._at
        self._at += 1
        least = self._count(start)
        if not self._take(","):
            most: int | None = least
        else:
            most = None if self._next == "}" else self._count(start)
        if not self._take("}"):
            self._refuse("a count is `{3}`, `{3,}` or `{3,5}`", start)
        if most is not None and most < least:
            self._refuse(f"{most} is less than {least}", start)
        return least, most

    def _count(self, start: int) -> int:
        at = self._at
        digits = self._take_while(_DIGITS)
        if not digits:
            self._refuse("a count is `{3}`, `{3,}` or `{3,5}`; write `\\{` for a bracket", start)
        if int(digits) > MAX_COUNT:
            self._refuse(f"a count is at most {MAX_COUNT:,}", at)
        return int(digits)

    # -- atoms ------------------------------------------------------------------------------------

    def _atom(self) -> PatternPart:
        start, character = self._at, self._next
        match character:
            case "(":
                return self._bracket()
            case "[":
                return self._class()
            case ".":
                self._at += 1
                return AnyPoint()
            case "\\":
                escape = self._escape()
                return Class((escape,))
            case _ if character in _NOT_LITERAL:
                self._refuse(f"write `\\{character}` for this bracket", start, start + 1)
            case _:
                self._at += 1
                return Class((Range(ord(character), ord(character)),))

    def _bracket(self) -> PatternPart:
        start = self._at
        self._levels += 1
        if self._levels > MAX_LEVELS:
            self._refuse(f"there are more than {MAX_LEVELS} levels of brackets", start, start + 1)
        number = 0
        if not self._take("(?:"):
            self._refuse_extension()
            self._at += 1
            self._groups += 1
            number = self._groups
            if number > MAX_GROUPS:
                self._refuse(f"there are more than {MAX_GROUPS} groups", start, start + 1)
        content = self._alternation()
        if not self._take(")"):
            self._refuse("there is no `)` for this `(`", start, start + 1)
        self._levels -= 1
        return Group(number, content) if number else content

    def _refuse_extension(self) -> None:
        start = self._at
        if not self._text.startswith("(?", start):
            return
        for beginning, missing in _UNSUPPORTED_GROUPS.items():
            if self._text.startswith(beginning, start):
                self._refuse(f"there {missing}", start, start + len(beginning))
        if self._text[start + 2 : start + 3] in ("i", "s"):
            self._refuse("flags are allowed only at the very start", start, start + 3)
        self._refuse("after `(?` only `:` is allowed here", start, min(start + 3, len(self._text)))

    def _escape(self) -> Range | Escape:
        start = self._at
        self._at += 1
        letter = self._next
        if not letter:
            self._refuse("there is nothing after this `\\`", start)
        self._at += 1
        if letter in "dws":
            return Escape(letter, negated=False)
        if letter in "DWS":
            return Escape(letter.lower(), negated=True)
        if letter in "pP":
            return Escape(self._category(start), negated=letter == "P")
        code_point = self._escaped_code_point(letter, start)
        return Range(code_point, code_point)

    def _category(self, start: int) -> str:
        end = self._text.find("}", self._at)
        if self._next != "{" or end < 0:
            self._refuse("a category is written `\\p{L}`", start)
        name = self._text[self._at + 1 : end]
        self._at = end + 1
        if name not in _CATEGORIES:
            self._refuse(f"there is no general category `{name}`", start)
        return name

    def _escaped_code_point(self, letter: str, start: int) -> int:
        if letter in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[letter]
        if letter == "x":
            return self._two_digits(start)
        if letter == "u":
            return self._braced_digits(start)
        if letter in _DIGITS:
            self._refuse("there is no back-reference", start)
        if "!" <= letter <= "~" and not letter.isalnum():
            return ord(letter)
        missing = _UNSUPPORTED_ESCAPES.get(letter, f"escape `\\{letter}`")
        self._refuse(f"there is no {missing}", start)

    def _two_digits(self, start: int) -> int:
        digits = self._text[self._at : self._at + 2]
        self._at += len(digits)
        if len(digits) < 2 or not set(digits) <= set(_HEX_DIGITS):
            self._refuse("after `\\x` come two hexadecimal digits", start)
        return int(digits, 16)

    def _braced_digits(self, start: int) -> int:
        digits = self._take_while(_HEX_DIGITS) if self._take("{") else ""
        if not digits or not self._take("}"):
            self._refuse("a code point is written `\\u{1F600}`", start)
        code_point = int(digits, 16)
        if code_point > _LAST_CODE_POINT or code_point in _SURROGATES:
            self._refuse(f"U+{digits.upper()} is no code point of a text", start)
        return code_point

    # -- classes ----------------------------------------------------------------------------------

    def _class(self) -> Class:
        start = self._at
        self._at += 1
        negated = self._take("^")
        first = self._at
        items: list[Range | Escape] = []
        while not self._take("]"):
            if not self._next:
                self._refuse("there is no `]` for this `[`", start, start + 1)
            items.append(self._class_item(first))
        if not items:
            self._refuse("a class has at least one item; write `\\]` for a bracket", start)
        return Class(tuple(items), negated)

    def _class_item(self, first: int) -> Range | Escape:
        start = self._at
        item = self._class_character(first)
        # A hyphen before the closing bracket is the last item and forms no range.
        is_range = self._next == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", "")
        if not is_range:
            return item
        if isinstance(item, Escape):
            self._refuse("a range goes from one code point to another; write `\\-` for a hyphen", start, self._at + 1)
        self._at += 1
        last = self._class_character(first)
        if isinstance(last, Escape):
            self._refuse("a range goes from one code point to another; write `\\-` for a hyphen", start)
        if last.last < item.first:
            self._refuse("the first of a range comes after its last", start)
        return Range(item.first, last.last)

    def _class_character(self, first: int) -> Range | Escape:
        """Parse one code point or escape of a class. `first` is the offset of the first item."""
        start, character = self._at, self._next
        if character == "\\":
            if self._text[start + 1 : start + 2] in ("b", "B"):
                self._refuse("in a class there are no anchors", start, start + 2)
            return self._escape()
        if character == "[":
            problem = "there are no `[:…:]`" if self._text.startswith("[:", start) else "write `\\[` for this bracket"
            self._refuse(problem, start, start + 1)
        if self._text.startswith("&&", start):
            self._refuse("there are no intersections of classes", start, start + 2)
        is_last = self._text[start + 1 : start + 2] == "]"
        if character == "-" and start != first and not is_last:
            self._refuse("write `\\-` for a hyphen that is not first or last", start, start + 1)
        self._at += 1
        return Range(ord(character), ord(character))
