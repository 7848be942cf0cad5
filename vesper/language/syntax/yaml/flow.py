"""Scalars and collections in brackets, and the base of the parser: white space, limits, keys.

An invalid text raises `YamlFault`. Depth and number of values are limited, and every character is read a bounded number
of times.
"""

from __future__ import annotations

import re
from typing import NoReturn

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.syntax.yaml.profile import ProfileRule, refuse
from vesper.language.syntax.yaml.scalars import BREAK, MARKER, PLAIN_BLOCK, PLAIN_FLOW, ScalarReader, YamlFault
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree

MAX_DEPTH = 32
MAX_VALUES = 8_192
MAX_ENTRIES = 4_096
MAX_KEY = 1024
"""Maximum length of a key without `?`, in characters; a limit of YAML itself."""

_SKIP = re.compile(rf"(?:[ \t]*+(?:(?<![^ \t\r\n])#[^\r\n]*+)?({BREAK}))*( *+)([ \t]*+)")
"""White space, comments and line breaks; then the indentation of the line reached and white space after it."""
WHITE = frozenset(" \t\r\n")
_NOT_PLAIN = frozenset(",[]{}#&*!|>'\"%@`")
_FLOW_ENDS = frozenset(" \t\r\n,[]{}")
"""Characters after which `-`, `?` and `:` inside brackets are indicators and not text."""
_ALIAS = re.compile(r"\*[^ \t\r\n,\[\]{}]++")
_PROPERTY = re.compile(
    r"&[^ \t\r\n,\[\]{}]++|"
    r"!<[0-9A-Za-z\-#;/?:@&=+$,_.!~*'()\[\]%]++>|"
    r"!(?P<handle>[0-9A-Za-z-]*!)?(?:[0-9A-Za-z\-#;/?:@&=+$_.~*'()]|%[0-9A-Fa-f]{2})*"
)
_PROPERTY_ENDS = frozenset(" \t\r\n,]}")
_PROPERTY_RULES = {"&": (ProfileRule.REFERENCES, "an anchor"), "!": (ProfileRule.TAGS, "a tag")}
_BLANK = re.compile(r"[ \t]*+")


class TooLarge(Exception):
    """A limit was exceeded; the bag holds the reason."""


class WantedValue(Exception):
    """The value of the wanted key was read, which ends the parsing."""

    def __init__(self, value: Tree) -> None:
        super().__init__()
        self.value = value


class FlowReader(ScalarReader):
    """Reads the values that may be on one line: scalars, aliases and collections in brackets."""

    def __init__(self, bag: DiagnosticBag, wanted_key: str | None = None) -> None:
        super().__init__(bag.source.text)
        self._bag = bag
        self._wanted = wanted_key
        self._depth = 0
        self._values = 0
        self._line_start = 0
        self._handles = {"!", "!!"}
        """Handles of tags that the document may use."""
        self.column = 0
        """Indentation of the line whose first token is at the cursor; -1 at the end of a document."""
        self.tabbed = False
        """True if a tab is in the white space before the cursor."""

    # -- white space ------------------------------------------------------------------------------

    def _skip(self) -> bool:
        """Skip white space and comments. Returns whether the cursor is on another line or at the start."""
        match = _SKIP.match(self.text, self.pos)
        assert match is not None
        is_fresh = match.start(1) >= 0 or self.pos == 0
        start, indented, self.pos = match.start(2), match.end(2), match.end()
        self.tabbed = self.pos > indented
        if is_fresh:
            self._line_start = start
            self.column = indented - start
            if self.pos >= len(self.text) or (indented == start and MARKER.match(self.text, start)):
                self.column = -1
        return is_fresh

    def _is_one_space(self) -> bool:
        """Return whether one space separates the cursor from the next token. This is the frequent case."""
        text, at = self.text, self.pos
        return text[at] == " " and text[at + 1] not in " \t\r\n#"

    def _is_indicator(self, sign: str) -> bool:
        return self.text[self.pos] == sign and self.text[self.pos + 1] in WHITE

    # -- scalars and flow collections -------------------------------------------------------------

    def _flow_node(self, margin: int, pattern: re.Pattern[str]) -> Tree:
        """Read a scalar, an alias or a collection in brackets. Further lines are indented by at least `margin`."""
        text, start = self.text, self.pos
        character = text[start]
        if character == '"':
            self._count(start)
            value = self.read_double_quoted(margin)
        elif character == "'":
            self._count(start)
            value = self.read_single_quoted(margin)
        elif character in "[{":
            return self._flow_collection(margin)
        elif character == "*":
            return self._alias()
        elif character in "&!":
            end, _ = self._properties()
            self._flow_skip(margin, start)
            if text[self.pos] in ",]}:":
                return self._empty_scalar(end)
            if text[self.pos] == "*":
                raise YamlFault(self.pos, "an alias has no anchor and no tag")
            return self._flow_node(margin, pattern)
        else:
            ends = WHITE if pattern is PLAIN_BLOCK else _FLOW_ENDS
            if character in _NOT_PLAIN or (character in "-?:" and text[start + 1] in ends):
                self._refuse_value()
            self._count(start)
            value = self.read_plain(margin, pattern)
            character = ""
        return Scalar(value, character, Span(start, self.pos))

    def _alias(self) -> Scalar:
        match = _ALIAS.match(self.text, self.pos)
        if match is None:
            raise YamlFault(self.pos, "not an alias of YAML")
        span = Span(self.pos, match.end())
        refuse(ProfileRule.REFERENCES, "an alias", span, self._bag)
        self.pos = match.end()
        self._count(span.start)
        return Scalar("", "", span)

    def _refuse_value(self) -> NoReturn:
        character = self.text[self.pos]
        raise YamlFault(self.pos, f"a value cannot start with `{character}`")

    def _flow_skip(self, margin: int, opened: int) -> bool:
        """Skip white space inside brackets; return whether a line ended."""
        if self.text[self.pos] not in " \t\r\n#":
            return False
        if self._is_one_space():
            self.pos += 1
            return False
        if not self._skip():
            return False
        if self.column < 0:
            if self.pos >= len(self.text):
                raise YamlFault(opened, f"this `{self.text[opened]}` is never closed")
            raise YamlFault(self.pos, "a document marker inside brackets")
        self._check_margin(self._line_start, self._line_start + self.column, margin)
        return True

    def _flow_collection(self, margin: int) -> Tree:
        start = self.pos
        self._enter(start)
        is_mapping = self.text[start] == "{"
        close = "}" if is_mapping else "]"
        entries: list[tuple[Scalar, Tree]] = []
        items: list[Tree] = []
        seen: dict[str, Span] = {}
        self.pos += 1
        self._flow_skip(margin, start)
        while (character := self.text[self.pos]) != close:
            if character in ",]}":
                raise YamlFault(self.pos, "a value is missing here" if character == "," else f"expected `{close}`")
            if is_mapping:
                key, value = self._flow_entry(margin, start)
                self._add_entry(entries, seen, key, value)
            else:
                items.append(self._flow_item(margin, start))
                if len(items) > MAX_ENTRIES:
                    self._stop_too_many_entries(items[-1])
            self._flow_skip(margin, start)
            if self.text[self.pos] == ",":
                self.pos += 1
                self._flow_skip(margin, start)
            elif self.text[self.pos] != close:
                raise YamlFault(self.pos, f"expected `,` or `{close}`")
        self.pos += 1
        span = self._leave(start, self.pos)
        return Mapping(tuple(entries), span) if is_mapping else Sequence(tuple(items), span)

    def _flow_entry(self, margin: int, opened: int) -> tuple[Scalar, Tree]:
        """Read an entry of `{…}`: `key: value`, `key`, `? key : value` or `: value`."""
        start = self.pos
        if self._is_indicator("?"):
            refuse(ProfileRule.EXPLICIT_KEYS, "a key after `?`", Span(start, start + 1), self._bag)
            self.pos += 1
            self._flow_skip(margin, opened)
            if self.text[self.pos] in ",]}":
                return self._empty_scalar(self.pos), self._empty_scalar(self.pos)
        key_start = self.pos
        if self.text[key_start] == ":" and self.text[key_start + 1] in _FLOW_ENDS:
            refuse(ProfileRule.EMPTY_KEYS, "an entry without a key", Span(key_start, key_start + 1), self._bag)
            key: Tree = self._empty_scalar(key_start)
        else:
            key = self._flow_node(margin, PLAIN_FLOW)
        end = self.pos
        self._flow_skip(margin, opened)
        if not self._is_flow_colon(end):
            self.pos = end
            return self._scalar_key(key), self._empty_scalar(end)
        return self._scalar_key(key), self._flow_value(margin, opened)

    def _is_flow_colon(self, key_end: int) -> bool:
        """Return whether the cursor is at the colon of a key. After quotes and brackets no space need follow it."""
        if self.text[self.pos] != ":":
            return False
        return self.text[self.pos + 1] in _FLOW_ENDS or self.text[key_end - 1] in "\"']}"

    def _flow_value(self, margin: int, opened: int) -> Tree:
        self.pos += 1
        end = self.pos
        self._flow_skip(margin, opened)
        if self.text[self.pos] in ",]}":
            self.pos = end
            return self._empty_scalar(end)
        return self._flow_node(margin, PLAIN_FLOW)

    def _flow_item(self, margin: int, opened: int) -> Tree:
        """Read an item of `[…]`: a value, or one `key: value`, which is a mapping."""
        start = self.pos
        if self._is_indicator("?") or (self.text[start] == ":" and self.text[start + 1] in _FLOW_ENDS):
            key, value = self._flow_entry(margin, opened)
        else:
            node = self._flow_node(margin, PLAIN_FLOW)
            end = self.pos
            crossed = self._flow_skip(margin, opened)
            if not self._is_flow_colon(end):
                self.pos = end
                return node
            if crossed or "\n" in self.text[start:end] or self.pos - start > MAX_KEY:
                raise YamlFault(start, f"a key inside `[…]` must be on one line, with at most {MAX_KEY:,} characters")
            key, value = self._scalar_key(node), self._flow_value(margin, opened)
        self._count(key.span.start)
        return Mapping(((key, value),), Span(start, max(value.span.end, key.span.end)))

    def _properties(self) -> tuple[int, frozenset[str]]:
        """Skip an anchor and a tag in either order. Returns their end and their first characters."""
        text, end = self.text, self.pos
        signs: set[str] = set()
        while (sign := text[self.pos]) in "&!":
            match = _PROPERTY.match(text, self.pos)
            if match is None or sign in signs or text[match.end()] not in _PROPERTY_ENDS:
                raise YamlFault(self.pos, "not an anchor or tag of YAML")
            handle = match["handle"]
            if handle is not None and f"!{handle}" not in self._handles:
                raise YamlFault(self.pos, "no directive declares the handle of this tag")
            signs.add(sign)
            end = match.end()
            rule, feature = _PROPERTY_RULES[sign]
            refuse(rule, feature, Span(self.pos, end), self._bag)
            blank = _BLANK.match(text, end)
            assert blank is not None
            self.pos = blank.end() if text[blank.end()] in "&!" else end
            if self.pos == end:
                break
        return end, frozenset(signs)

    def _empty_scalar(self, at: int) -> Scalar:
        self._count(at)
        return Scalar("", "", Span(at, at))

    def _scalar_key(self, node: Tree) -> Scalar:
        if isinstance(node, Scalar):
            return node
        refuse(ProfileRule.SCALAR_KEYS, "a key that is not a single word", node.span, self._bag)
        return Scalar("", "", node.span)

    # -- limits and keys --------------------------------------------------------------------------

    def _enter(self, start: int) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            span = Span(start, start + 1)
            self._bag.error(Code.TOO_DEEP, span, limit=MAX_DEPTH, what="nesting in this document")
            raise TooLarge

    def _leave(self, start: int, end: int) -> Span:
        self._depth -= 1
        span = Span(start, end)
        self._count(span.start)
        return span

    def _count(self, start: int) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            what = "keys and values in this document"
            self._bag.error(Code.TOO_LARGE, self._bag.source.character(start), limit=f"{MAX_VALUES:,}", what=what)
            raise TooLarge

    def _stop_too_many_entries(self, tree: Tree) -> NoReturn:
        what = "entries in this list or mapping"
        self._bag.error(Code.TOO_LARGE, tree.span, limit=f"{MAX_ENTRIES:,}", what=what)
        raise TooLarge

    def _add_entry(self, entries: list[tuple[Scalar, Tree]], seen: dict[str, Span], key: Scalar, value: Tree) -> None:
        """Check the key and add an entry of a mapping. Raises `WantedValue` at the wanted key."""
        self._check_key(seen, key)
        if self._depth == 1 and key.text == self._wanted:
            raise WantedValue(value)
        entries.append((key, value))
        if len(entries) > MAX_ENTRIES:
            self._stop_too_many_entries(value)

    def _check_key(self, seen: dict[str, Span], key: Scalar) -> None:
        if key.text == "" and key.style == "":
            return  # an alias, a collection or nothing, which was refused
        if key.text == "<<" and key.style == "":
            refuse(ProfileRule.MERGE_KEYS, "a merge key", key.span, self._bag)
        first = seen.setdefault(key.text, key.span)
        if first is not key.span:
            also = (Label(first, "the first one"),)
            self._bag.error(Code.DUPLICATE_KEY, key.span, "the second one", also=also, key=key.text)
