"""Scalars of YAML 1.2: their text and their end, read at an offset of the file.

Line folding, escapes, chomping and indentation follow chapters 5 to 8 of the YAML 1.2.2 specification. Line breaks are
`\\n`, `\\r\\n` and `\\r`; U+0085, U+2028 and U+2029 are ordinary characters.
"""

from __future__ import annotations

import re

BREAK = r"(?:\r\n?|\n)"
ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}
# No group here is possessive: CPython before 3.11.4 ends such a group at the wrong place.
PLAIN_BLOCK = re.compile(r"(?:[^:#\r\n]++|:(?=[^ \t\r\n])|(?<![ \t])#)+")
"""Text of a plain scalar up to the end of its line, with trailing white space."""
PLAIN_FLOW = re.compile(r"(?:[^:#\r\n,\[\]{}]++|:(?=[^ \t\r\n,\[\]{}])|(?<![ \t])#)+")
"""The same inside brackets, which end it."""
TAB_IN_INDENTATION = "a tab in the indentation"
MARKER = re.compile(r"(?:---|\.\.\.)(?=[ \t\r\n])")
"""Start or end of a document, in the first column."""

_FOLD = re.compile(rf"{BREAK}((?:[ \t]*+{BREAK})*)( *+)[ \t]*+")
_TABBED_BLANK = re.compile(rf"( *+)\t[ \t]*+(?={BREAK})")
_LINE_BREAK = re.compile(BREAK)
_DOUBLE_RUN = re.compile(r'[^"\\\r\n]*+')
_SINGLE_RUN = re.compile(r"(?:[^'\r\n]++|'')*")
_ESCAPED_BREAK = re.compile(BREAK)
_HEADER = re.compile(
    rf"[|>](?:(?P<digit>[1-9])?(?P<chomp>[-+])?|(?P<chomp_first>[-+])(?P<digit_last>[1-9]))"
    rf"(?=[ \t\r\n])[ \t]*+(?:(?<=[ \t])#[^\r\n]*+)?{BREAK}"
)
_LINE = re.compile(rf"( *+)([^\r\n]*+){BREAK}")


class YamlFault(Exception):
    """The text breaks a rule of YAML at an offset."""

    def __init__(
        self,
        offset: int,
        reason: str,
        help: str | None = None,
        edits: tuple[tuple[int, int, str], ...] = (),
        is_clear: bool = False,
    ) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason
        self.help = help
        self.edits = edits
        """Replacements that repair it: start, end and new text of each."""
        self.is_clear = is_clear
        """Whether they can only be meant so."""


class ScalarReader:
    """Reads scalars from a text that ends with a line break. `self.pos` is the cursor."""

    def __init__(self, text: str) -> None:
        self.text = text if text.endswith(("\n", "\r")) else text + "\n"
        self.end = len(text)
        """End of the file's own text, before the added line break."""
        self.pos = 0
        self.under_indented: dict[int, int] = {}
        """Lines inside quotes or brackets that are indented too little: offset of the text, and missing spaces."""

    def read_plain(self, margin: int, pattern: re.Pattern[str]) -> str:
        """Read a plain scalar at the cursor. Further lines are indented by at least `margin` spaces."""
        text = self.text
        match = pattern.match(text, self.pos)
        assert match is not None, "the caller checked the first character"
        first = match[0].rstrip(" \t")
        self.pos += len(first)
        if text[match.end()] not in "\r\n":
            return first
        parts = [first]
        while (fold := _FOLD.match(text, match.end())) is not None:
            start = fold.end()
            if start >= len(text) or fold.end(2) - fold.start(2) < margin or text[start] == "#":
                break
            if start == fold.start(2) and MARKER.match(text, start):
                break
            match = pattern.match(text, start)
            if match is None:
                break
            self._check_blank_lines(fold.start(1), fold.end(1), margin)
            part = match[0].rstrip(" \t")
            parts += (self._folded_text(fold[1]), part)
            self.pos = start + len(part)
            if text[match.end()] not in "\r\n":
                break
        return "".join(parts)

    def read_single_quoted(self, margin: int) -> str:
        """Read a scalar in single quotes."""
        start = self.pos
        self.pos += 1
        parts: list[str] = []
        while True:
            match = _SINGLE_RUN.match(self.text, self.pos)
            assert match is not None
            self.pos = match.end()
            run = match[0].replace("''", "'")
            if self.text[self.pos] == "'":
                self.pos += 1
                return "".join((*parts, run))
            parts += (run.rstrip(" \t"), self._fold_quoted(start, margin))

    def read_double_quoted(self, margin: int) -> str:
        """Read a scalar in double quotes, with its escapes."""
        start = self.pos
        self.pos += 1
        parts: list[str] = []
        while True:
            match = _DOUBLE_RUN.match(self.text, self.pos)
            assert match is not None
            self.pos = match.end()
            character = self.text[self.pos]
            if character == '"':
                self.pos += 1
                parts.append(match[0])
                return "".join(parts)
            if character == "\\":
                parts += (match[0], self._escape(start, margin))
            else:
                parts += (match[0].rstrip(" \t"), self._fold_quoted(start, margin))

    def _escape(self, start: int, margin: int) -> str:
        """Read an escape of double quotes at the cursor."""
        at, kind = self.pos, self.text[self.pos + 1]
        if kind in "\r\n":
            self.pos += 1
            folded = self._fold_quoted(start, margin)
            return "" if folded == " " else folded
        self.pos += 2
        if kind in ESCAPES:
            return ESCAPES[kind]
        width = HEX_ESCAPES.get(kind, 0)
        digits = self.text[self.pos : self.pos + width]
        if not width or not re.fullmatch(f"[0-9A-Fa-f]{{{width}}}", digits):
            raise YamlFault(at, f"`\\{kind}` is no escape of double quotes")
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise YamlFault(at, f"the escape code `\\{kind}{digits}` is no Unicode character")
        self.pos += width
        return chr(code)

    def _fold_quoted(self, start: int, margin: int) -> str:
        """Skip the line break at the cursor and return its folded text.

        It is a space, or one break for each blank line.
        """
        fold = _FOLD.match(self.text, self.pos)
        assert fold is not None
        self.pos = fold.end()
        if self.pos >= len(self.text):
            raise YamlFault(start, "this quote is never closed")
        if self.pos == fold.start(2) and MARKER.match(self.text, self.pos):
            raise YamlFault(self.pos, "a document marker inside quotes")
        self._check_blank_lines(fold.start(1), fold.end(1), margin)
        self._check_margin(fold.start(2), fold.end(2), margin)
        return self._folded_text(fold[1])

    def _check_margin(self, start: int, end: int, margin: int) -> None:
        if end - start < margin:
            if self.text[end] == "\t":
                raise YamlFault(end, TAB_IN_INDENTATION)
            self.under_indented[end] = margin - (end - start)

    def _check_blank_lines(self, start: int, end: int, margin: int) -> None:
        """Report a blank line of a scalar whose indentation has a tab."""
        if end - start < 2 or "\t" not in self.text[start:end]:
            return
        for blank in _TABBED_BLANK.finditer(self.text, start, end):
            if len(blank[1]) < margin:
                raise YamlFault(blank.end(1), TAB_IN_INDENTATION)

    @staticmethod
    def _folded_text(blank_lines: str) -> str:
        return "\n" * len(_LINE_BREAK.findall(blank_lines)) if blank_lines else " "

    def read_block_scalar(self, parent: int) -> str:
        """Read a literal or folded scalar whose parent is indented by `parent`.

        The cursor then is on the line after it.
        """
        header = _HEADER.match(self.text, self.pos)
        if header is None:
            raise YamlFault(self.pos, "the first line of a block text is `|` or `>`, one digit, `+` or `-`")
        is_folded = self.text[self.pos] == ">"
        digit = header["digit"] or header["digit_last"]
        chomp = header["chomp"] or header["chomp_first"] or ""
        self.pos = header.end()
        lines = self._block_lines(None if digit is None else max(parent, 0) + int(digit), parent + 1)
        size = len(lines)
        while size and not lines[size - 1]:
            size -= 1
        trailing = len(lines) - size
        content = _fold_lines(lines[:size]) if is_folded else "\n".join(lines[:size])
        if chomp == "-":
            return content
        if chomp == "+":
            return content + "\n" * (trailing + bool(size))
        return content + "\n" if size else content

    def _block_lines(self, indent: int | None, least: int) -> list[str]:
        """Return the lines of a block scalar without indentation.

        Without an indicator the first line decides the indentation.
        """
        text = self.text
        lines: list[str] = []
        longest_blank = 0
        while (match := _LINE.match(text, self.pos)) is not None:
            start, spaces = self.pos, match.end(1) - self.pos
            if match.end(1) == match.end(2):
                if indent is None and spaces > longest_blank:
                    longest_blank = spaces
                lines.append(" " * (spaces - indent) if indent is not None else "")
            else:
                if spaces == 0 and MARKER.match(text, start):
                    break
                if spaces < (least if indent is None else indent) and not match[2].strip(" \t"):
                    raise YamlFault(start + spaces, TAB_IN_INDENTATION)
                if indent is None:
                    if spaces < least:
                        break
                    if longest_blank > spaces:
                        raise YamlFault(start + spaces, "a blank line above has more spaces than this first line")
                    indent = spaces
                if spaces < indent:
                    break
                lines.append(text[start + indent : match.end(2)])
            self.pos = match.end()
        return lines


def _fold_lines(lines: list[str]) -> str:
    """Join the lines of a folded scalar. Lines that start with white space keep the breaks around them."""
    parts: list[str] = []
    blanks = 0
    was_spaced = True
    for line in lines:
        if not line:
            blanks += 1
            continue
        is_spaced = line[0] in " \t"
        if not parts:
            parts.append("\n" * blanks)
        elif is_spaced or was_spaced:
            parts.append("\n" * (blanks + 1))
        else:
            parts.append("\n" * blanks or " ")
        parts.append(line)
        blanks, was_spaced = 0, is_spaced
    return "".join(parts)
