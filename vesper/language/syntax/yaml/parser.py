"""Parser of YAML 1.2: documents and block collections, to a tree with spans.

It accepts the whole syntax of YAML 1.2.2 and reports what the profile of nodes excludes. An invalid text raises
`YamlFault`; only lines inside quotes or brackets that are indented too little are collected, since their meaning is
clear.
"""

from __future__ import annotations

import re

from vesper.language.diagnostics.source import Span
from vesper.language.syntax.yaml.flow import MAX_ENTRIES, MAX_KEY, WHITE, FlowReader
from vesper.language.syntax.yaml.profile import ProfileRule, refuse
from vesper.language.syntax.yaml.scalars import BREAK, PLAIN_BLOCK, TAB_IN_INDENTATION, YamlFault
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree

_SIMPLE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*+(?=:[ \t\r\n])")
_COLON = re.compile(r"[ \t]*+:(?=[ \t\r\n])")
_DIRECTIVE = re.compile(
    rf"%(?:YAML(?P<version>(?:[ \t]++[0-9]+\.[0-9]+)+)|TAG[ \t]++(?P<handle>!(?:[0-9A-Za-z-]*!)?)[ \t]++[^ \t\r\n]++"
    rf"|(?!YAML[ \t\r\n]|TAG[ \t\r\n])[^ \t\r\n]++(?:[ \t]++[^ \t\r\n#][^ \t\r\n]*+)*)"
    rf"[ \t]*+(?:(?<=[ \t])#[^\r\n]*+)?(?={BREAK})"
)
MISINDENTED = "this line is indented differently from the lines above it"


class YamlParser(FlowReader):
    """Parses one text. A block collection ends where a line is indented less."""

    # -- documents --------------------------------------------------------------------------------

    def parse(self) -> Tree | None:
        """Return the tree of the first document; None if there is none. Further documents are refused."""
        root: Tree | None = None
        count = 0
        self._skip()
        may_have_directives = True
        while self.pos < len(self.text):
            has_directives = may_have_directives and self._directives()
            is_explicit = self.column < 0 and self.text.startswith("---", self.pos)
            if has_directives and not is_explicit:
                raise YamlFault(self.pos, "`---` must follow a directive")
            if is_explicit or self.column >= 0:
                count += 1
                if count == 2:
                    refuse(ProfileRule.ONE_DOCUMENT, "a second document", Span(self.pos, self.pos + 3), self._bag)
                tree = self._document(is_explicit)
                root = tree if count == 1 else root
            may_have_directives = False
            while self.pos < len(self.text) and self.text[self.pos] == ".":
                self.pos += 3
                self._end_line()
                may_have_directives = True
        return root

    def _document(self, is_explicit: bool) -> Tree:
        if is_explicit:
            self.pos += 3
            tree = self._block_node(-1, is_compact=False, has_indentless=False)
        else:
            tree = self._node_at(-1, True, False)
        if self.column >= 0:
            raise YamlFault(self.pos, "the document has ended: nothing can follow its value")
        self._handles = {"!", "!!"}
        return tree

    def _directives(self) -> bool:
        """Skip the directives of a document; return whether it has any."""
        versions = count = 0
        while self.column == 0 and self.text[self.pos] == "%":
            match = _DIRECTIVE.match(self.text, self.pos)
            versions += match is not None and match["version"] is not None
            if match is None or versions > 1:
                raise YamlFault(self.pos, "not a directive of YAML")
            if match["handle"]:
                self._handles.add(match["handle"])
            end = len(match[0].partition(" #")[0].rstrip()) + self.pos
            refuse(ProfileRule.DIRECTIVES, "a directive", Span(self.pos, end), self._bag)
            count += 1
            self.pos = match.end()
            self._end_line()
        return count > 0

    def _end_line(self) -> None:
        """Go to the first token of the next line. Only a comment may stand before it."""
        if self._skip():
            return
        at, text = self.pos, self.text
        if text[at] == ":":
            ends_key = text[at + 1] in WHITE
            raise YamlFault(at, "no key can stand here" if ends_key else "a space is missing after `:`")
        raise YamlFault(at, "a space is missing before `#`" if text[at] == "#" else "the value ends before this")

    # -- blocks -----------------------------------------------------------------------------------

    def _block_node(self, parent: int, is_compact: bool, has_indentless: bool) -> Tree:
        """Read the node after an indicator, and go to the next line's first token.

        `parent` is the indentation of the collection around it. After `- ` and `? ` a collection may start on the
        indicator's line (`is_compact`). In a mapping a sequence may be indented like its key (`has_indentless`).
        """
        after = self.pos
        if self._is_one_space():
            self.pos, self.tabbed, is_fresh = after + 1, False, False
        else:
            is_fresh = self._skip()
        if not is_fresh:
            if is_compact:
                self.column = self.pos - self._line_start
            return self._node_at(parent, is_compact, has_indentless)
        if self._holds_node(parent, has_indentless):
            return self._node_at(parent, True, has_indentless)
        return self._empty_scalar(after)

    def _tab_fault(self) -> YamlFault:
        return YamlFault(self.text.rindex("\t", 0, self.pos), TAB_IN_INDENTATION)

    def _holds_node(self, parent: int, has_indentless: bool) -> bool:
        """Return whether the line at the cursor is indented for a node of `parent`."""
        return self.column > parent or (self.column == parent and has_indentless and self._is_indicator("-"))

    def _node_at(self, parent: int, may_be_block: bool, has_indentless: bool) -> Tree:
        """Read the node at the cursor. A block collection starts here only if `may_be_block`."""
        text, start, column, is_tabbed = self.text, self.pos, self.column, self.tabbed
        character = text[start]
        if character in "-?:" and text[start + 1] in WHITE:
            if not may_be_block:
                raise YamlFault(start, "a list or mapping starts on a line of its own")
            if is_tabbed:
                raise self._tab_fault()
            return self._block_sequence(column == parent) if character == "-" else self._block_mapping(column, None)
        if character in "|>":
            self._count(start)
            value = self.read_block_scalar(parent)
            span = Span(start, min(self.pos, self.end))
            self._go_to_line()
            return Scalar(value, character, span)
        if character in "&!":
            return self._node_with_properties(parent, may_be_block, has_indentless)
        node = self._flow_node(parent + 1, PLAIN_BLOCK)
        colon = _COLON.match(text, self.pos)
        if colon is None:
            self._end_line()
            return node
        if not may_be_block:
            raise YamlFault(colon.end() - 1, "no key can stand here")
        if is_tabbed:
            raise self._tab_fault()
        return self._block_mapping(column, self._as_key(node, start, colon.end()))

    def _go_to_line(self) -> None:
        """Go to the first token at or after the start of a line."""
        self.pos -= 1
        self._skip()

    def _node_with_properties(
        self, parent: int, may_be_block: bool, has_indentless: bool, outer: frozenset[str] = frozenset()
    ) -> Tree:
        """Read a node after anchors and tags, which are refused. `outer` are the signs of those on lines above it."""
        column, is_tabbed = self.column, self.tabbed
        end, signs = self._properties()
        if self._skip():
            if outer & signs:
                raise YamlFault(end, "a value has at most one anchor and one tag")
            if not self._holds_node(parent, has_indentless):
                return self._empty_scalar(end)
            if self.text[self.pos] in "&!":
                return self._node_with_properties(parent, True, has_indentless, outer | signs)
            return self._node_at(parent, True, has_indentless)
        start, character = self.pos, self.text[self.pos]
        if character in "-?" and self.text[start + 1] in WHITE:
            raise YamlFault(start, "a list or mapping starts on a line of its own")
        if character == "*":
            raise YamlFault(start, "an alias has no anchor and no tag")
        self.column, self.tabbed = column, is_tabbed
        node = self._node_at(parent, may_be_block, has_indentless)
        is_block_mapping = isinstance(node, Mapping) and character != "{"
        if outer & signs and not is_block_mapping:
            raise YamlFault(start, "a value has at most one anchor and one tag")
        return node

    def _block_sequence(self, is_indentless: bool) -> Sequence:
        column, start = self.column, self.pos
        self._enter(start)
        items: list[Tree] = []
        while True:
            self.pos += 1
            items.append(self._block_node(column, is_compact=True, has_indentless=False))
            if len(items) > MAX_ENTRIES:
                self._stop_too_many_entries(items[-1])
            if self.column > column:
                self._refuse_line(column, MISINDENTED)
            if self.column == column and not is_indentless and not self._is_indicator("-"):
                self._refuse_line(column, "`- ` is missing: the lines above it in this column are items of a list")
            if self.column != column or not self._is_indicator("-"):
                break
            if self.tabbed:
                raise self._tab_fault()
        return Sequence(tuple(items), self._leave(start, items[-1].span.end))

    def _block_mapping(self, column: int, key: Scalar | None) -> Mapping:
        """Read a mapping. The cursor is at the colon of its first key, or at `?` or a colon without a key."""
        text = self.text
        start = self.pos if key is None else key.span.start
        self._enter(start)
        entries: list[tuple[Scalar, Tree]] = []
        seen: dict[str, Span] = {}
        while True:
            if key is None:
                key, value = self._entry_without_simple_key(column)
            else:
                self.pos += 1
                value = self._block_node(column, is_compact=False, has_indentless=True)
            self._add_entry(entries, seen, key, value)
            if self.column > column:
                self._refuse_line(column, MISINDENTED)
            if self.column != column:
                break
            if self.tabbed:
                raise self._tab_fault()
            match = _SIMPLE_KEY.match(text, self.pos)
            if match is not None:
                end = match.end()
                key = Scalar(match[0], "", Span(self.pos, end))
                self._count(key.span.start)
                self.pos = end
            else:
                key = self._next_key()
        return Mapping(tuple(entries), self._leave(start, entries[-1][1].span.end))

    def _refuse_line(self, column: int, reason: str) -> None:
        """Refuse the line at the cursor, which does not belong to the block at `column`."""
        raise YamlFault(self.pos, reason)

    def _next_key(self) -> Scalar | None:
        """Read a key up to its colon; None at `? ` or at a colon without a key."""
        start = self.pos
        if self._is_indicator("?") or self._is_indicator(":"):
            return None
        if self._is_indicator("-"):
            raise YamlFault(start, "an item of a list among the keys of a mapping")
        if self.text[start] in "&!":
            self._properties()
            self._skip()
            if self.text[self.pos] == "*":
                raise YamlFault(self.pos, "an alias has no anchor and no tag")
            if self._is_indicator(":"):
                return None
        node = self._flow_node(self.column + 1, PLAIN_BLOCK)
        colon = _COLON.match(self.text, self.pos)
        if colon is None:
            is_close = self.text[self.pos] == ":"
            raise YamlFault(
                self.pos if is_close else start, f"a key needs `:` and a space after {'it' * (not is_close)}"
            )
        return self._as_key(node, start, colon.end())

    def _as_key(self, node: Tree, start: int, end: int) -> Scalar:
        """Check a key without `?` and go to its colon."""
        if "\n" in self.text[start:end] or "\r" in self.text[start:end]:
            raise YamlFault(start, "a key must be on one line")
        if end - start > MAX_KEY:
            raise YamlFault(start, f"a key has at most {MAX_KEY:,} characters")
        self.pos = end - 1
        return self._scalar_key(node)

    def _entry_without_simple_key(self, column: int) -> tuple[Scalar, Tree]:
        """Read an entry with `?`, or one without a key."""
        start = self.pos
        if self.text[start] == ":":
            refuse(ProfileRule.EMPTY_KEYS, "an entry without a key", Span(start, start + 1), self._bag)
            key = self._empty_scalar(start)
        else:
            refuse(ProfileRule.EXPLICIT_KEYS, "a key after `?`", Span(start, start + 1), self._bag)
            self.pos += 1
            key = self._scalar_key(self._block_node(column, is_compact=True, has_indentless=True))
            if self.column != column or not self._is_indicator(":"):
                return key, self._empty_scalar(key.span.end)
            if self.tabbed:
                raise self._tab_fault()
        self.pos += 1
        is_compact = self.text[start] == "?"
        return key, self._block_node(column, is_compact=is_compact, has_indentless=True)
