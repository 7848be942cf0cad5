"""Translation of an expression in a foreign spelling, by the table of habits.

It runs only if an expression cannot be parsed, or a function is unknown. A translation is used only if it parses; the
diagnostic then shows the whole expression in Vesper's spelling.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from vesper.language.syntax.habits import table
from vesper.language.syntax.habits.date_patterns import meant_pattern
from vesper.language.syntax.habits.pieces import COMPARISONS, Piece, new_piece, reach_left, reach_right, read_pieces
from vesper.language.syntax.habits.table import FORMS, Form, respelt_function
from vesper.values.generated.operations import OPERATIONS

FUNCTION_NAMES = frozenset(spec.function for spec in OPERATIONS.values() if spec.function is not None)
_CHAIN = Form(
    "Python", "$a:s $p:c $b:s $q:c $c:s", "$a $p $b AND $b $q $c", shown=("a < b < c", "a < b AND b < c")
)  # fmt: skip
_OPENS = frozenset(["", "(", "[", "{", ",", ":", "IF", "THEN", "ELSE", "WHERE", "SATISFIES", "IN", "="])
_CLOSES = frozenset(
    ["", ")", "]", "}", ",", ":", "IF", "THEN", "ELSE", "FOR", "WHERE", "SATISFIES", "WHEN", "END", ".."]
)
_BETWEEN_CONDITIONS = frozenset(["AND", "OR", "=>", "NOT"])
_OPERATORS = frozenset(["==", "!=", "<=", ">=", "*", "/", "??"])
_MAX_ROUNDS = 20
_TIGHT_AFTER, _TIGHT_BEFORE = tuple("([{."), (*")]},.", "..")


@dataclass(frozen=True, slots=True)
class Habit:
    """One foreign spelling in an expression."""

    start: int
    end: int
    written: str
    meant: str
    note: str = ""


@dataclass(slots=True)
class Respelling:
    """An expression, translated as far as the table has translations."""

    text: str
    """The text that was written."""
    pieces: list[Piece]
    habits: list[Habit]
    is_certain: bool = True
    has_forms: bool = False
    """Whether more than single words and signs were translated."""

    def translation(self) -> str:
        """Return the translated text. White space between adjacent original pieces stays unchanged."""
        parts: list[str] = []
        last: Piece | None = None
        for piece in self.pieces:
            if last is not None:
                parts.append(self._space(last, piece))
            parts.append(piece.text)
            last = piece
        return "".join(parts)

    def _space(self, last: Piece, piece: Piece) -> str:
        between = self.text[last.end : piece.start] if last.end <= piece.start else " "
        if not (last.is_new or piece.is_new) and last.end <= piece.start and not between.strip():
            return between
        is_call = piece.text in ("(", "[") and last.kind == "name"
        is_tight = last.text in (*_TIGHT_AFTER, "..") or piece.text in _TIGHT_BEFORE or is_call
        is_sign = not between and (last.text in _OPERATORS or piece.text in _OPERATORS)
        return "" if is_tight or is_sign else between if between.isspace() else " "

    def edits(self) -> list[tuple[int, int, str]]:
        """Return replacements of single words and signs, or one of the whole text."""
        if self.has_forms or sum(each.is_new for each in self.pieces) != len(self.habits):
            return [(0, len(self.text.rstrip()), self.translation())]
        found: list[tuple[int, int, str]] = []
        for index, piece in enumerate(self.pieces):
            if not piece.is_new:
                continue
            before = self.pieces[index - 1] if index else None
            after = self.pieces[index + 1] if index + 1 < len(self.pieces) else None
            lead = self._space(before, piece) if before is not None and before.end == piece.start else ""
            tail = self._space(piece, after) if after is not None and piece.end == after.start else ""
            found.append((piece.start, piece.end, lead + piece.text + tail * (after is None or not after.is_new)))
        return found


def respell(text: str, at: int | None = None) -> Respelling:
    """Translate a text. With `at`, only the call of the function at this offset is translated."""
    found = Respelling(text, read_pieces(text), [])
    if at is None:
        for form in FORMS:
            if form.is_whole:
                _apply(found, form)
        _drop_items(found)
        _respell_words(found)
        _respell_signs(found)
        _respell_percentages(found)
        _respell_like(found)
    forms = [each for each in (*FORMS, _CHAIN) if not each.is_whole]
    for _ in range(_MAX_ROUNDS):
        if not any(_apply(found, form, at) for form in forms) and (at is not None or not _respell_method(found)):
            break
    return found


# -- words and signs ------------------------------------------------------------------------------


def _replace(found: Respelling, index: int, text: str) -> None:
    old = found.pieces[index]
    found.habits.append(Habit(old.start, old.end, old.text, text))
    found.pieces[index : index + 1] = [new_piece(each, old) for each in text.split(" ")]


def _neighbours(pieces: list[Piece], index: int) -> tuple[Piece | None, Piece | None]:
    return pieces[index - 1] if index else None, pieces[index + 1] if index + 1 < len(pieces) else None


_AFTER_IS = frozenset(["NOT", "NULL", "NONE", "NIL", "UNDEFINED"])


def _previous_texts(found: Respelling, index: int) -> list[str]:
    return [each.text for each in found.pieces[max(0, index - 2) : index]]


def _respell_words(found: Respelling) -> None:
    """Translate words in lower case where no name can be. This is after a value, or directly before one."""
    for index, piece in enumerate(found.pieces):
        before, after = _neighbours(found.pieces, index)
        is_after_value, has_value = before is not None and before.ends_value, after is not None and after.starts_value
        upper = piece.text.upper()
        is_null = piece.text == "null" or table.NAMES.get(piece.text) == "null"
        if (
            is_null
            and before is not None
            and before.text in ("IS", "NOT")
            and (index < 2 or "IS" in _previous_texts(found, index))
        ):
            _replace(found, index, "NULL")
            continue
        if piece.kind != "name" or (is_after_value and before is not None and before.text == "."):
            continue
        word = table.WORDS.get(piece.text)
        is_prefix = upper in table.WORDS_BEFORE_VALUE or (word is not None and word.isupper() and " " not in word)
        if word is not None and (is_after_value if not is_prefix else (has_value and not is_after_value)):
            is_quantifier = after is not None and after.kind == "name"
            if not is_prefix or is_quantifier:
                _replace(found, index, word)
        elif piece.text != upper and (
            (is_after_value and upper in table.WORDS_AFTER_VALUE) or (not is_after_value and has_value and is_prefix)
        ):
            is_equality = upper == "IS" and after is not None and after.text.upper() not in _AFTER_IS
            _replace(found, index, "==" if is_equality else upper)


def _respell_signs(found: Respelling) -> None:
    has_names = any(piece.text in ("LET", "FOR") for piece in found.pieces)
    for index, piece in enumerate(found.pieces):
        before, after = _neighbours(found.pieces, index)
        word = table.SIGNS.get(piece.text)
        depth = sum((each.text in tuple("([{")) - (each.text in tuple(")]}")) for each in found.pieces[:index])
        if piece.text == ";" and depth > 0:
            word = ","
        if piece.kind == "string" and piece.text[0] in "“‘":
            _replace_string(found, index)
        if word is None or piece.kind != "sign" or (piece.text == "=" and has_names):
            continue
        if piece.text in table.TEXT_SIGNS and "string" in {each.kind for each in (before, after) if each is not None}:
            word = table.TEXT_SIGNS[piece.text]
            if piece.text == "||":  # in JavaScript a default
                found.is_certain = False
        is_prefix = word == "NOT"
        if is_prefix == (before is not None and before.ends_value) or after is None or not after.starts_value:
            continue
        if (
            before is not None
            and before.kind == "sign"
            and before.end == piece.start
            and before.text not in "([{)]},&|"
        ):
            continue  # a part of a longer sign that no language has
        if after.text in ("!", "-") and is_prefix:
            continue
        found.is_certain = found.is_certain and piece.text not in ("&", "|", "||", "~", "=")
        _replace(found, index, word)


def _replace_string(found: Respelling, index: int) -> None:
    old = found.pieces[index]
    text = f"'{old.text[1:-1]}'" if "'" not in old.text else f'"{old.text[1:-1]}"'
    found.habits.append(Habit(old.start, old.end, old.text[0], "'"))
    found.pieces[index] = Piece(text, "string", old.start, old.end, True)


def _respell_percentages(found: Respelling) -> None:
    """Translate `20%`, `.5`, and `1,5` outside brackets. A value after `%` would make it a remainder."""
    for index in range(len(found.pieces) - 1, 0, -1):
        sign, number = found.pieces[index - 1 : index + 1]
        before = found.pieces[index - 2] if index > 1 else None
        is_near = number.kind == "number" and number.start == sign.end and (before is None or before.end == sign.start)
        is_comma = sign.text == "," and before is not None and before.kind == "number" and is_near
        is_decimal = is_comma and re.fullmatch(r"[0-9]{1,2}|[0-9]{4,}", number.text) is not None
        if is_decimal and before is not None and not any(each.text in tuple("([{") for each in found.pieces):
            text = f"{before.text.replace('.', '')}.{number.text}"
            found.habits.append(Habit(before.start, number.end, found.text[before.start : number.end], text))
            found.pieces[index - 2 : index + 1] = [Piece(text, "number", before.start, number.end, True)]
            found.has_forms, found.is_certain = True, False
            return
        if sign.text == "." and number.kind == "number" and (before is None or not before.ends_value):
            found.habits.append(Habit(sign.start, number.end, f".{number.text}", f"0.{number.text}"))
            found.pieces[index - 1 : index + 1] = [Piece(f"0.{number.text}", "number", sign.start, number.end, True)]
            found.has_forms = True
            return
    for index in range(len(found.pieces) - 2, -1, -1):
        number, sign = found.pieces[index], found.pieces[index + 1]
        after = found.pieces[index + 2] if index + 2 < len(found.pieces) else None
        follows = after is not None and after.starts_value and after.text != "-"
        if number.kind == "number" and sign.text == "%" and not follows and re.fullmatch(r"[0-9.]+", number.text):
            text = f"{Decimal(number.text).scaleb(-2):f}"
            found.habits.append(Habit(number.start, sign.end, f"{number.text}%", text))
            found.pieces[index : index + 2] = [Piece(text, "number", number.start, sign.end, True)]
            found.has_forms = True


_LIKE = {(False, True): "starts_with", (True, False): "ends_with", (True, True): "contains"}


def _pattern_of(like: str) -> str:
    """Return the regular expression of a pattern of SQL."""
    signs = {"%": ".*", "_": ".", **{each: f"\\{each}" for each in ".^$*+?()[]{}|\\"}}
    text = "".join(signs.get(each, each) for each in like)
    return f"^{text}$".removesuffix(".*$").removeprefix("^.*")


def _respell_like(found: Respelling) -> None:
    """Translate `name LIKE 'A%'`. A pattern with signs inside is a regular expression."""
    for index, piece in enumerate(found.pieces):
        negation = found.pieces[index - 1 : index] if index and found.pieces[index - 1].text == "NOT" else []
        start, end = reach_left(found.pieces, index - len(negation), "o"), index - len(negation)
        pattern = found.pieces[index + 1] if index + 1 < len(found.pieces) else None
        if piece.text.upper() != "LIKE" or start == end or pattern is None or pattern.kind != "string":
            continue
        text = pattern.text[1:-1]
        function = _LIKE.get((text.startswith("%"), text.endswith("%")))
        if function is None or re.search("[%_]", text.strip("%")):
            function, text = "matches", _pattern_of(text)
        found.habits.append(Habit(piece.start, piece.end, piece.text, function))
        found.has_forms = True
        text = text if function == "matches" else text.strip("%")
        literal = Piece(f"'{text}'", "string", pattern.start, pattern.end, True)
        call = (new_piece(function, piece), new_piece("(", piece), *found.pieces[start:end], new_piece(",", piece))
        found.pieces[start : index + 2] = [*negation, *call, literal, new_piece(")", piece)]
        _respell_like(found)
        return


def _drop_items(found: Respelling) -> None:
    """Drop the `.items()` of `for k, v in m.items()`: two names are bound to a map itself."""
    pieces = found.pieces
    for index in range(len(pieces) - 4, -1, -1):
        if [each.text for each in pieces[index : index + 4]] != [".", "items", "(", ")"]:
            continue
        start = reach_left(pieces, index, "o")
        words = [each.text.upper() for each in pieces[max(0, start - 5) : start]]
        if start < index and len(words) == 5 and (words[0], words[2], words[4]) == ("FOR", ",", "IN"):
            found.habits.append(Habit(pieces[index].start, pieces[index + 3].end, "m.items()", "m"))
            del pieces[index : index + 4]
            found.has_forms = True


# -- methods --------------------------------------------------------------------------------------


def _respell_method(found: Respelling) -> bool:
    """Translate one `x.f(a)` to `f(x, a)`."""
    pieces = found.pieces
    for index in range(1, len(pieces) - 2):
        if pieces[index].text != "." or pieces[index + 1].kind not in ("name", "word") or pieces[index + 2].text != "(":
            continue
        name, start = pieces[index + 1], reach_left(pieces, index, "o")
        ours = (name.text,) if name.text in FUNCTION_NAMES else respelt_function(name.text, FUNCTION_NAMES)
        if not ours or start == index:
            continue
        if index - start == 1 and pieces[start].text in table.MODULES:
            base, shown = pieces[start], (f"{pieces[start].text}.{name.text}(…)", f"{ours[0]}(…)")
            found.habits.append(Habit(base.start, name.end, *shown))
            found.pieces[start : index + 2] = [Piece(ours[0], "name", base.start, name.end, True)]
            found.has_forms = True
            return True
        is_empty = index + 3 < len(pieces) and pieces[index + 3].text == ")"
        comma = [] if is_empty else [new_piece(",", name)]
        more = "" if is_empty else ", …"
        shown = (f"x.{name.text}({more[2:]})", f"{ours[0]}(x{more})")
        found.habits.append(Habit(name.start, name.end, *shown))
        function = Piece(ours[0], "name", name.start, name.end, True)
        _respell_date_pattern(pieces, index + 3, ours[0])
        found.pieces[start : index + 3] = [function, pieces[index + 2], *pieces[start:index], *comma]
        found.has_forms = True
        found.is_certain = found.is_certain and len(ours) == 1
        return True
    return False


def _respell_date_pattern(pieces: list[Piece], index: int, function: str) -> None:
    """Translate the pattern of a date in the first argument of a method."""
    literal = pieces[index]
    meant = meant_pattern(literal.text[1:-1])
    is_pattern = function in ("format_date", "parse_date", "parse_timestamp") and literal.kind == "string"
    if is_pattern and meant != literal.text[1:-1]:
        quote = '"' if "'" in meant else "'"
        pieces[index] = Piece(f"{quote}{meant}{quote}", "string", literal.start, literal.end, True)


# -- forms ----------------------------------------------------------------------------------------


def _apply(found: Respelling, form: Form, at: int | None = None) -> bool:
    """Translate one occurrence of a form; return whether there is one."""
    elements = form.pattern.split()
    anchor = next(position for position, each in enumerate(elements) if not _is_hole(each) or each.endswith(":c"))
    if not any(_matches(elements[anchor], piece) for piece in found.pieces):
        return False
    order = range(len(found.pieces))
    for index in reversed(order) if form.binds_right else order:
        piece = found.pieces[index]
        if (at is not None and piece.start != at) or (form.is_cased and piece.text != elements[anchor]):
            continue
        matched = _match(found.pieces, elements, anchor, index)
        if matched is None or (form.is_whole and matched[:2] != (0, len(found.pieces))):
            continue
        start, end, holes = matched
        if "%" in form.pattern and holes["a"][-1].kind == "string":
            continue  # a text with holes of Python
        if form is _CHAIN and holes["p"][0].text[0] != holes["q"][0].text[0]:
            continue
        new = _substitute(form, holes, piece)
        if [each.text for each in new] == [each.text for each in found.pieces[start:end]]:
            continue
        if form.translation.endswith("WHEN") and not _is_whole_case(found.pieces, start, end):
            continue
        is_chained = form is _CHAIN and end < len(found.pieces) and found.pieces[end].text in COMPARISONS
        new = new if form.is_whole or is_chained else _wrap(found.pieces, start, end, new, piece)
        _drop_habits_inside(found, form, start, end, piece)
        found.habits.append(_habit(form, elements, piece))
        found.pieces[start:end] = new
        found.is_certain = found.is_certain and form.is_certain
        found.has_forms = True
        return True
    return False


def _is_whole_case(pieces: list[Piece], start: int, end: int) -> bool:
    """Return whether a CASE has no operator beside it. Its END is the first after `end`."""
    last = next((index for index in range(end, len(pieces)) if pieces[index].text.upper() == "END"), len(pieces))
    before = pieces[start - 1].text if start else ""
    return before in _OPENS and (last + 1 >= len(pieces) or pieces[last + 1].text in _CLOSES)


def _drop_habits_inside(found: Respelling, form: Form, start: int, end: int, anchor: Piece) -> None:
    """Drop the translated words inside a form, because the form is reported as one habit."""
    words = {each.upper() for each in form.pattern.split() if not _is_hole(each)}
    inside = {piece.start for piece in found.pieces[start:end] if piece.is_new and piece.text in words}
    found.habits = [each for each in found.habits if each.start not in inside or each.start > anchor.end + 200]


def _habit(form: Form, elements: list[str], piece: Piece) -> Habit:
    if form.shown is not None:
        return Habit(piece.start, piece.end, *form.shown, form.note)
    shown = " ".join(each[1:].partition(":")[0] if _is_hole(each) else each for each in elements)
    both = (shown, re.sub(r"\$([a-z]+)!?", r"\1", form.translation))
    return Habit(piece.start, piece.end, *(re.sub(r" (\))| (\() ", r"\1\2", each) for each in both))


def _is_hole(element: str) -> bool:
    return len(element) > 1 and element[0] == "$"


def _matches(element: str, piece: Piece) -> bool:
    if element.endswith(":c"):
        return piece.text in COMPARISONS
    return piece.text == element or (element.isalpha() and piece.text.upper() == element.upper())


def _match(
    pieces: list[Piece], elements: list[str], anchor: int, index: int
) -> tuple[int, int, dict[str, list[Piece]]] | None:
    """Return start, end and holes of a form whose first fixed element is at `index`."""
    holes: dict[str, list[Piece]] = {}
    start = index
    is_call = anchor == 0 and len(elements) > 1 and elements[1] == "(" and elements[0] != "IN"
    if not _matches(elements[anchor], pieces[index]) or (is_call and index and pieces[index - 1].ends_value):
        return None
    if is_call and index and pieces[index - 1].text == ".":
        return None
    if anchor == 1:
        name, _, kind = elements[0][1:].partition(":")
        start = reach_left(pieces, index, kind)
        holes[name] = pieces[start:index]
        if start == index:
            return None
    cursor = index
    for position in range(anchor, len(elements)):
        element = elements[position]
        name, _, kind = element[1:].partition(":")
        if not _is_hole(element) or kind == "c":
            if cursor >= len(pieces) or not _matches(element, pieces[cursor]):
                return None
            holes[name] = [pieces[cursor]]
            cursor += 1
            continue
        following = elements[position + 1] if position + 1 < len(elements) else None
        end = _end_of_hole(pieces, cursor, kind, following)
        if end is None or (end == cursor and kind != "*"):
            return None
        holes[name] = pieces[cursor:end]
        cursor = end
    return start, cursor, holes


def _end_of_hole(pieces: list[Piece], start: int, kind: str, following: str | None) -> int | None:
    if kind == "*":  # up to the closing bracket
        end, commas = start, 0
        while end < len(pieces) and pieces[end].text not in (")", "]"):
            after = end + 1 if pieces[end].text == "," else reach_right(pieces, end, "e")
            if after == end:
                return None
            commas, end = commas + (pieces[end].text == ","), after
        return end if end < len(pieces) and (commas or following != ")" or end > start) else None
    end = reach_right(pieces, start, kind)
    if following is not None and not _is_hole(following):
        # A hole reaches to the fixed element after it, which may be one that it would include.
        for index in range(start, end):
            if _matches(following, pieces[index]) and reach_right(pieces[:index], start, kind) == index:
                return index
    return end


def _substitute(form: Form, holes: dict[str, list[Piece]], at: Piece) -> list[Piece]:
    new: list[Piece] = []
    for element in form.translation.split():
        if not _is_hole(element):
            new.append(new_piece(element, at))
            continue
        hole = holes[element[1:].rstrip("!")]
        is_operand = reach_right(hole, 0, "o") == len(hole)
        if element.endswith("!") and not is_operand:
            hole = [new_piece("(", at), *hole, new_piece(")", at)]
        new += hole
    return new


def _wrap(pieces: list[Piece], start: int, end: int, new: list[Piece], at: Piece) -> list[Piece]:
    """Put a translation in parentheses if an operator beside it binds tighter."""
    if reach_right(new, 0, "o") == len(new) or new[0].text == "IN" or new[0].text == "FOR" or new[-1].text == "WHEN":
        return new
    before = pieces[start - 1].text if start else ""
    after = pieces[end].text if end < len(pieces) else ""
    is_condition = reach_right(new, 0, "e") == len(new) and not {"AND", "OR", "??", "+"} & {each.text for each in new}
    around = _BETWEEN_CONDITIONS if is_condition else frozenset[str]()
    if before in _OPENS | around and after in _CLOSES | around:
        return new
    return [new_piece("(", at), *new, new_piece(")", at)]
