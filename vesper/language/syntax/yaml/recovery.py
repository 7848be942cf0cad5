"""Parser of a text that is not YAML, which continues after a fault.

A value that cannot be read becomes an UNREAD scalar, and reading continues at the next line that is indented no deeper
than its key. Each fault is explained in terms of a node, at the place of the mistake.
"""

from __future__ import annotations

import re

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.syntax.expression_slot import quote_scalar
from vesper.language.syntax.yaml.parser import MISINDENTED, YamlParser
from vesper.language.syntax.yaml.scalars import YamlFault
from vesper.language.syntax.yaml_tree import UNREAD, Scalar, Tree

_MAX_FAULTS = 20
_KEY = re.compile(r"(?:- +)*(?P<key>[A-Za-z_][A-Za-z0-9_]*)(?P<colon> *:)?(?P<space>[ \t]+|$)(?P<rest>.*)")
_SECTIONS = frozenset(["inputs", "outputs", "success", "constants", "contracts", "testing", "security", "types"])
_CLOSING = {"[": "]", "{": "}"}
_NO_KEY = "no key can stand here"


class RecoveringParser(YamlParser):
    """Parses a text with faults, and collects them."""

    def __init__(self, bag: DiagnosticBag) -> None:
        super().__init__(bag)
        self.faults: list[YamlFault] = []
        self._unread: Span | None = None
        """The rest of an entry whose key could not be read."""

    def _block_node(self, parent: int, is_compact: bool, has_indentless: bool) -> Tree:
        if self._unread is not None:
            span, self._unread = self._unread, None
            return Scalar("", UNREAD, span)
        start, depth, spaces = self.pos, self._depth, dict(self.under_indented)
        try:
            return super()._block_node(parent, is_compact, has_indentless)
        except YamlFault as fault:
            self.note(fault, start, parent)
            self._depth, self.under_indented = depth, spaces
            self._skip_lines(start, parent)
            return Scalar("", UNREAD, Span(start, min(self.pos, self.end)))

    def _refuse_line(self, column: int, reason: str) -> None:
        if self.tabbed:
            raise self._tab_fault()
        self.note(YamlFault(self.pos, reason), self.pos, column)
        while self.column > column or (reason is not MISINDENTED and self.column == column):
            self._skip_lines(self.pos, column)
            if self.pos >= len(self.text) or self._is_indicator("-"):
                break

    def _next_key(self) -> Scalar | None:
        start, column = self.pos, self.column
        try:
            return super()._next_key()
        except YamlFault as fault:
            self.note(fault, start, column)
            match = _KEY.match(self._line(start)[start - self._start_of_line(start) :])
            end = start + (len(match["key"]) if match else 1)
            key = Scalar(match["key"] if match else "", UNREAD, Span(start, end))
            if match is not None and not match["rest"] and not match["colon"]:
                self.pos = end - 1  # read on as if the colon were there
                return key
            self._skip_lines(start, column)
            self._unread, self.pos = Span(start, min(self.pos, self.end)), self.pos - 1
            return key

    def _skip_lines(self, start: int, column: int) -> None:
        """Go to the next line that is indented by at most `column`. It starts after the line of `start`."""
        self.pos = start
        while True:
            line_end = min(index for index in (*self._next_breaks(), len(self.text) - 1) if index >= 0)
            self.pos = line_end
            self._skip()
            if self.column <= column or self.pos >= len(self.text):
                return

    def _next_breaks(self) -> tuple[int, int]:
        return self.text.find("\n", self.pos), self.text.find("\r", self.pos)

    # -- words ------------------------------------------------------------------------------------

    @property
    def has_enough(self) -> bool:
        """Whether the maximum number of faults is reached."""
        return len(self.faults) >= _MAX_FAULTS

    def note(self, fault: YamlFault, start: int, parent: int) -> None:
        """Record a fault in the value that starts at `start`, with its explanation."""
        if self.has_enough:
            raise fault  # ends the reading
        self.faults.append(self._explain(fault, start, parent))

    def _explain(self, fault: YamlFault, start: int, parent: int) -> YamlFault:
        line = self._start_of_line(fault.offset)
        is_later_line = "\n" in self.text[start : fault.offset].strip("\n") or line > start + 1
        reason = fault.reason
        if reason == _NO_KEY and is_later_line and line > self._start_of_line(start):
            return self._explain_deeper_line(fault.offset, start, parent)
        if reason == _NO_KEY:
            return self._explain_inner_colon(fault.offset)
        if reason == "the value ends before this":
            return self._explain_early_end(fault.offset)
        if reason.startswith(("a key needs", "a key must be on one line")):
            return self._explain_missing_colon(fault)
        if reason.startswith("an item of a list"):
            return self._explain_missing_dash(fault.offset)
        if reason.startswith("expected `,` or") or reason.endswith("is never closed"):
            return self._explain_open_bracket(fault, start)
        if reason is MISINDENTED and _KEY.match(self._line(fault.offset).strip()):
            return self._explain_misindented(fault.offset, parent)
        if reason.startswith("a list or mapping starts"):
            return YamlFault(fault.offset, reason, "put it on the next line, indented deeper than its key")
        if reason.startswith("a value cannot start with"):
            text = self._value_text(fault.offset)
            if text.startswith("```"):
                return YamlFault(fault.offset, reason, "remove this line and its closing one: it is Markdown")
            if re.fullmatch(r"[@%][a-z_][a-z0-9_.]*", text):
                edits = ((fault.offset, fault.offset + 1, ""),)
                return YamlFault(fault.offset, reason, f"write `{text[1:]}`: a name stands without a sign", edits)
            return self._explain_first_sign(fault.offset, reason, text)
        if reason.startswith("`- ` is missing"):
            return YamlFault(fault.offset, reason, f"write `- {self._line(fault.offset).strip()}`")
        return fault

    def _explain_first_sign(self, offset: int, reason: str, text: str) -> YamlFault:
        """Explain a value such as `>= 100` without quotes. Inside brackets it ends at the next comma or bracket."""
        before = self._line(offset)[: offset - self._start_of_line(offset)]
        key = re.search(r"[\w]+: +$", before)
        if before.count("{") + before.count("[") > before.count("}") + before.count("]"):
            text = re.split(r"[,{}\[\]]", text)[0].rstrip()
        elif " #" in text:
            text = text[: text.index(" #")].rstrip()
        quoted = quote_scalar(text)
        help_ = f"put the whole value in quotes: `{'' if key is None else key[0]}{quoted}`"
        return YamlFault(offset, reason, help_, ((offset, offset + len(text), quoted),), is_clear=True)

    def _explain_deeper_line(self, offset: int, start: int, parent: int) -> YamlFault:
        """Explain a key that is indented deeper than the key above it.

        The line looks like a part of that key's value.
        """
        line = self._start_of_line(offset)
        text = self._line(line)
        key = _KEY.match(self._line(start).lstrip(" "))
        above = "the line above it" if key is None else f"`{key['key']}` above it"
        reason = f"this line is deeper than {above}, so it continues that value"
        indent, names = len(text) - len(text.lstrip(" ")), [text.strip().partition(":")[0]]
        edits, end = [(line, line + indent - max(parent, 0), "")], line + len(text) + 1
        while (below := self._line(end)) and below.startswith(text[:indent]):
            edits.append((end, end + indent - max(parent, 0), ""))
            if not below[indent:].startswith((" ", "#", "- ")):
                names.append(below.strip().partition(":")[0])
            end += len(below) + 1
        listed = " and ".join(filter(None, (", ".join(f"`{name}:`" for name in names[:-1]), f"`{names[-1]}:`")))
        spaces = f"{max(parent, 0)} spaces before {'it' if len(names) == 1 else 'each'}, not {indent}"
        help_ = f"put {listed} in the column of {above}: {spaces}"
        return YamlFault(line + indent, reason, help_, tuple(edits), is_clear=key is not None and key["key"] == "step")

    def _explain_misindented(self, offset: int, parent: int) -> YamlFault:
        """Explain a line between the columns of the keys above it."""
        line = self._start_of_line(offset)
        above = self._line(line - 1) if line else ""
        key = re.match(r" *(?:- +)*", above)
        column = max(parent, 0) if key is None or above.strip() == "" else key.end()
        edits = ((line, offset, " " * column),)
        return YamlFault(offset, MISINDENTED, f"indent it by {column} spaces, as the line above it", edits)

    def _explain_inner_colon(self, offset: int) -> YamlFault:
        line = self._line(offset)
        key = _KEY.match(line.lstrip(" "))
        reason = "`: ` inside a value starts another key, and none can stand here"
        if key is None or not key["colon"]:
            return YamlFault(offset, reason, "put the whole value in quotes")
        if key["key"] in _SECTIONS and re.match(r"[A-Za-z_]\w*: ", key["rest"]):
            return YamlFault(
                offset, reason, f"put `{key['rest'].rstrip()}` on the next line, indented by 2 more spaces"
            )
        if re.match(r"(?:array|list|List|set|map|optional)[<\[].*\{", key["rest"]):
            return self._explain_record_in_type(offset, reason, key["rest"].rstrip())
        meant = self._respell(offset, reason, key["rest"])
        help_ = f"put the whole value in quotes: `{key['key']}: {quote_scalar(key['rest'])}`"
        return meant or YamlFault(offset, reason, help_)

    def _explain_record_in_type(self, offset: int, reason: str, type_: str) -> YamlFault:
        from vesper.language.syntax.habits.type_rescue import named_record  # which reads with this parser

        start = self._start_of_line(offset) + self._line(offset).rindex(type_)
        meant, is_declared, help_ = named_record(type_, self._bag.source, start)
        edits = ((start, start + len(type_), meant),) if is_declared else ()
        return YamlFault(offset, reason, help_, edits, is_clear=True)

    def _explain_early_end(self, offset: int) -> YamlFault:
        line = self._line(offset)
        key = _KEY.match(line.lstrip(" "))
        value = key["rest"] if key is not None and key["colon"] else line.strip().removeprefix("- ")
        closing = line[: offset - self._start_of_line(offset)].rstrip()[-1:]
        what = {"'": "the text in quotes", '"': "the text in quotes", "]": "the list", "}": "the mapping"}
        reason = f"{what.get(closing, 'the value')} ends before this"
        value = value.rstrip()
        if value[:1] == value[-1:] == "'" and '"' not in value and len(value) > 2 and value.count("'") % 2:
            return YamlFault(offset, reason, f'a text with `\'` in it is put in double quotes: `"{value[1:-1]}"`')
        help_ = f"put the whole expression in quotes: `{quote_scalar(value)}`"
        return self._respell(offset, reason, value) or YamlFault(offset, reason, help_)

    def _respell(self, offset: int, reason: str, value: str) -> YamlFault | None:
        """Return the fault with a translated expression. None if the value is not in a foreign spelling."""
        from vesper.language.syntax.expression_parser import parse_placed  # which reads values of this parser
        from vesper.language.syntax.habits.forms import respell
        from vesper.language.syntax.habits.rescue import translate

        value = re.split(r"\s+#", value)[0].rstrip()
        meant = translate(value, self._bag.source, parse_placed)
        if meant is None:
            return None
        start = self._start_of_line(offset) + self._line(offset).rindex(value)
        signs = ", ".join(f"`{each.written}` is written `{each.meant}`" for each in respell(value).habits)
        help_ = f"write `{meant}`" + (f": {signs}" if signs else "")
        return YamlFault(offset, reason, help_, ((start, start + len(value), meant),), is_clear=True)

    def _explain_missing_colon(self, fault: YamlFault) -> YamlFault:
        line = self._start_of_line(fault.offset)
        text = self._line(line)
        key = _KEY.match(text.lstrip(" "))
        if key is None or key["colon"]:
            is_close = re.match(r"[A-Za-z_][A-Za-z0-9_]*:\S", text.lstrip(" "))
            help_ = f"write `{text.strip().replace(':', ': ', 1)}`" if is_close else "write `name: value`, or quotes"
            return YamlFault(fault.offset, fault.reason, help_)
        indent = len(text) - len(text.lstrip(" "))
        offset = line + indent + key.end("key")
        rest = key["rest"].removeprefix("=").strip()
        meant = f"{key['key']}:{' ' * bool(rest)}{rest}"
        is_equals = key["rest"].startswith("=")
        edits = ((offset, offset + is_equals * (key.start("rest") + 1 - key.end("key")), ":"),)
        return YamlFault(offset, f"`:` is missing after `{key['key']}`", f"write `{meant}`", edits, is_clear=True)

    def _explain_missing_dash(self, offset: int) -> YamlFault:
        """Explain a list whose first item has no dash, at that item."""
        column = offset - self._start_of_line(offset)
        first = self._start_of_line(offset)
        while first > 0:
            above = self._line(first - 1)
            if above.strip() and len(above) - len(above.lstrip(" ")) < column:
                break
            first = self._start_of_line(first - 1)
        while not self._line(first).strip():
            first += len(self._line(first)) + 1
        text = self._line(first).strip()
        reason = "`- ` is missing before this: the lines below are items of a list"
        edits, line = [(first + column, first + column, "- ")], first + len(self._line(first)) + 1
        while line < self._start_of_line(offset):
            if self._line(line).strip():
                edits.append((line, line, "  "))
            line += len(self._line(line)) + 1
        help_ = f"write `- {text}`, and indent the rest of this item by 2 more spaces"
        return YamlFault(first + column, reason, help_, tuple(edits), is_clear=True)

    def _explain_open_bracket(self, fault: YamlFault, start: int) -> YamlFault:
        line = self._line(start)
        first = self._start_of_line(start)
        opened = next((index for index, each in enumerate(line) if each in "[{\"'" and first + index >= start), None)
        half_open = re.search(r": (?P<range>[\[(][^\[\](){},'\"]*\.\.[^\[\](){},'\"]*[\])])", self._line(fault.offset))
        if half_open is not None:
            at = self._start_of_line(fault.offset) + half_open.start("range")
            range_ = half_open["range"]
            help_ = f'a range in a cell is put in quotes: `"{range_}"`'
            edits = ((at, at + len(range_), f'"{range_}"'),)
            return YamlFault(at, "YAML reads `[` as a list, which ends with `]`", help_, edits, is_clear=True)
        if opened is None or (self._start_of_line(fault.offset) == first and "closed" not in fault.reason):
            return fault
        sign, end = line[opened], first + len(line.rstrip())
        close = _CLOSING.get(sign, sign)
        help_ = f"write `{close}` at its end: `{line[opened:].rstrip()}{close}`"
        return YamlFault(first + opened, f"this `{sign}` is never closed", help_, ((end, end, close),))

    def _value_text(self, offset: int) -> str:
        return self._line(offset)[offset - self._start_of_line(offset) :].rstrip()

    def _start_of_line(self, offset: int) -> int:
        return max(self.text.rfind("\n", 0, offset), self.text.rfind("\r", 0, offset)) + 1

    def _line(self, offset: int) -> str:
        start = self._start_of_line(offset)
        return re.split(r"[\r\n]", self.text[start : start + 2_000], maxsplit=1)[0]
