"""Reader of XLSX workbooks: a ZIP archive of XML parts, read with limits on every size.

Numbers are taken from the text of the file (`number_text`), never through a float. A document type declaration, and
with it every entity, is refused.
"""

from __future__ import annotations

import io
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from xml.parsers import expat

from vesper.storage.sheets.model import (
    MAX_CELL_CHARACTERS,
    MAX_COLUMNS,
    MAX_LINES,
    MAX_SHEETS,
    Sheet,
    SheetProblem,
    date_text,
    number_text,
)

MAX_PARTS = 4_096
MAX_PART_BYTES = 256 * 2**20
MAX_TOTAL_BYTES = 512 * 2**20
MAX_SHARED_TEXTS = 2_000_000
MAX_TAG = 1024 * 1024
"""Maximum length of a tag in bytes."""
MAX_DEPTH = 64
_CHUNK = 1 << 16
_DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
_LITERALS_OF_FORMAT = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")


def sheet_names(content: bytes) -> list[str]:
    """Return the names of the sheets of a workbook. Raises `SheetProblem`."""
    return list(_Workbook(content).sheets)


def read_sheet(content: bytes, name: str | None = None) -> Sheet:
    """Return a sheet of a workbook, by default the first. Raises `SheetProblem`."""
    workbook = _Workbook(content)
    if name is None:
        name = next(iter(workbook.sheets))
    if name not in workbook.sheets:
        raise SheetProblem(0, f"the workbook has no sheet `{name}`; it has: {', '.join(workbook.sheets)}")
    return workbook.sheet(name)


@dataclass(slots=True)
class _Element:
    name: str
    attributes: dict[str, str]


Handler = Callable[[list[_Element], str], None]
"""Called at the end of an element with the path to it and the text directly inside it."""


class _Workbook:
    def __init__(self, content: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
            raise SheetProblem(0, "the file is no XLSX workbook") from error
        parts = self._archive.infolist()
        if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
            raise SheetProblem(0, "the workbook is compressed in a way that XLSX does not have")
        if len(parts) > MAX_PARTS or sum(part.file_size for part in parts) > MAX_TOTAL_BYTES:
            raise SheetProblem(0, "the workbook is too large")
        self._left = MAX_TOTAL_BYTES
        self._names = {part.filename.lower(): part.filename for part in parts}
        self.is_1904 = False
        self.sheets = self._sheets()
        self._texts = self._shared_texts()
        self._date_styles = self._styles()

    def _parse(self, part: str, handle: Handler) -> bool:
        """Read a part of the workbook; return whether there is one."""
        name = self._names.get(part.lower())
        if name is None:
            return False
        reader = _XmlReader(handle)
        size = 0
        try:
            with self._archive.open(name) as file:
                while chunk := file.read(_CHUNK):
                    size += len(chunk)
                    self._left -= len(chunk)
                    if size > MAX_PART_BYTES or self._left < 0:
                        raise SheetProblem(0, "the workbook is too large")
                    reader.feed(chunk)
                reader.close()
        except (
            zipfile.BadZipFile,
            zlib.error,
            NotImplementedError,
            RuntimeError,
            EOFError,
            OSError,
            ValueError,
        ) as error:
            raise SheetProblem(0, f"`{name}` in the workbook is damaged: {error}") from error
        except expat.ExpatError as error:
            raise SheetProblem(0, f"`{name}` in the workbook is no XML: {error}") from error
        return True

    def _sheets(self) -> dict[str, str]:
        """Return the archive path of each sheet by sheet name, in workbook order. Also sets `is_1904`."""
        listed: dict[str, str] = {}
        targets: dict[str, str] = {}

        def workbook(path: list[_Element], _: str) -> None:
            element = path[-1]
            if element.name == "sheet" and len(listed) < MAX_SHEETS:
                listed[element.attributes.get("name", "")] = _attribute(element, "id")
            if element.name == "workbookPr":
                self.is_1904 = element.attributes.get("date1904") in ("1", "true")

        def relations(path: list[_Element], _: str) -> None:
            if path[-1].name == "Relationship":
                target = path[-1].attributes.get("Target", "")
                absolute = target[1:] if target.startswith("/") else posixpath.normpath(f"xl/{target}")
                targets[path[-1].attributes.get("Id", "")] = absolute

        if not self._parse("xl/workbook.xml", workbook) or not self._parse("xl/_rels/workbook.xml.rels", relations):
            raise SheetProblem(0, "the file is no XLSX workbook")
        sheets = {name: targets[key] for name, key in listed.items() if key in targets}
        if not sheets:
            raise SheetProblem(0, "the workbook has no sheet")
        return sheets

    def _shared_texts(self) -> list[str]:
        texts: list[str] = []
        parts: list[str] = []

        def handle(path: list[_Element], text: str) -> None:
            if path[-1].name == "t" and all(each.name != "rPh" for each in path):
                parts.append(text)
            elif path[-1].name == "si":
                texts.append("".join(parts))
                parts.clear()
                if len(texts) > MAX_SHARED_TEXTS:
                    raise SheetProblem(0, "the workbook is too large")

        self._parse("xl/sharedStrings.xml", handle)
        return texts

    def _styles(self) -> set[int]:
        """Return the styles of cells that hold dates."""
        formats: dict[str, str] = {}
        styles: list[str] = []

        def handle(path: list[_Element], _: str) -> None:
            element = path[-1]
            if element.name == "numFmt":
                formats[element.attributes.get("numFmtId", "")] = element.attributes.get("formatCode", "")
            elif element.name == "xf" and len(path) > 1 and path[-2].name == "cellXfs":
                styles.append(element.attributes.get("numFmtId", "0"))

        self._parse("xl/styles.xml", handle)
        return {at for at, key in enumerate(styles) if _is_date_format(key, formats.get(key))}

    def sheet(self, name: str) -> Sheet:
        cells = _Cells(self._texts, self._date_styles, self.is_1904)
        if not self._parse(self.sheets[name], cells.handle):
            raise SheetProblem(0, f"the workbook lacks the part of sheet `{name}`")
        return Sheet(name, tuple(cells.lines))


@dataclass(slots=True)
class _Cells:
    """Collects the cells of a sheet."""

    texts: list[str]
    date_styles: set[int]
    is_1904: bool
    lines: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    row: dict[int, str] = field(default_factory=dict)
    line: int = 0
    column: int = -1
    value: str | None = None
    inline: list[str] = field(default_factory=list)
    has_formula: bool = False

    def handle(self, path: list[_Element], text: str) -> None:
        match path[-1].name:
            case "v":
                self.value = text
            case "f":
                self.has_formula = True
            case "t" if any(each.name == "is" for each in path) and all(each.name != "rPh" for each in path):
                self.inline.append(text)
            case "c" if len(path) > 1 and path[-2].name == "row":
                self._cell(path[-1], path[-2])
            case "row":
                self._end_row(path[-1])

    def _cell(self, cell: _Element, row: _Element) -> None:
        reference = _REFERENCE.fullmatch(cell.attributes.get("r", ""))
        column = _column(reference[1]) if reference else self.column + 1
        if column >= MAX_COLUMNS:
            raise SheetProblem(self._line(row), f"the sheet has more than {MAX_COLUMNS} columns")
        self.column = column
        text = self._text(cell, self._line(row))
        if len(text) > MAX_CELL_CHARACTERS:
            raise SheetProblem(self._line(row), f"a cell has more than {MAX_CELL_CHARACTERS} characters")
        if text:
            self.row[column] = text
        self.value, self.has_formula = None, False
        self.inline.clear()

    def _line(self, row: _Element) -> int:
        number = row.attributes.get("r", "")
        return int(number) if number.isdigit() and len(number) < 9 else self.line + 1

    def _end_row(self, row: _Element) -> None:
        self.line = self._line(row)
        if self.row:
            cells = tuple(self.row.get(at, "") for at in range(max(self.row) + 1))
            self.lines.append((self.line, cells))
            if len(self.lines) > MAX_LINES:
                raise SheetProblem(self.line, f"the sheet has more than {MAX_LINES:,} lines")
        self.row.clear()
        self.column = -1

    def _text(self, cell: _Element, line: int) -> str:
        kind, value = cell.attributes.get("t", "n"), self.value
        if kind == "inlineStr":
            return "".join(self.inline)
        if value is None:
            if self.has_formula:
                raise SheetProblem(line, "a formula has no value; open the file in a spreadsheet program and save it")
            return ""
        if kind == "s":
            if not value.isdigit() or len(value) > 9 or int(value) >= len(self.texts):
                raise SheetProblem(line, "a cell refers to a text that the workbook does not have")
            return self.texts[int(value)]
        if kind == "b":
            return "true" if value == "1" else "false"
        if kind == "e":
            raise SheetProblem(line, f"a cell has the error `{value}`")
        if kind in ("str", "d"):
            return value
        return self._number(cell, value.strip(), line)

    def _number(self, cell: _Element, value: str, line: int) -> str:
        style = cell.attributes.get("s", "")
        try:
            if style.isdigit() and len(style) < 9 and int(style) in self.date_styles:
                return date_text(number_text(value), is_1904=self.is_1904)
            return number_text(value)
        except (ValueError, ArithmeticError) as error:
            raise SheetProblem(line, f"`{value[:40]}` is no number") from error


class _XmlReader:
    """Calls a handler at the end of every element; names lose their namespace."""

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self._path: list[_Element] = []
        self._texts: list[list[str]] = []
        self._unfinished = 0
        """Number of bytes since the last event."""
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype

    def feed(self, chunk: bytes) -> None:
        # The parser reads an unfinished tag again with each chunk, so a long one would take quadratic time.
        self._unfinished += len(chunk)
        if self._unfinished > MAX_TAG:
            raise SheetProblem(0, "the workbook has XML with a tag that is too long")
        self._parser.Parse(chunk, False)

    def close(self) -> None:
        self._parser.Parse(b"", True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._unfinished = 0
        if len(self._path) >= MAX_DEPTH:
            raise SheetProblem(0, "the workbook has XML that is nested too deep")
        self._path.append(_Element(_local(name), attributes))
        self._texts.append([])

    def _text(self, text: str) -> None:
        self._unfinished = 0
        self._texts[-1].append(text)

    def _end(self, _: str) -> None:
        self._unfinished = 0
        self._handle(self._path, "".join(self._texts.pop()))
        self._path.pop()

    def _refuse_doctype(self, *_: object) -> None:
        raise SheetProblem(0, "the workbook has a document type declaration, which no workbook needs")


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _attribute(element: _Element, name: str) -> str:
    """Return an attribute by its name without namespace."""
    return next((value for key, value in element.attributes.items() if key != "sheetId" and _local(key) == name), "")


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _is_date_format(key: str, code: str | None) -> bool:
    if code is None:
        return key.isdigit() and int(key) in _DATE_FORMATS
    return bool(re.search(r"[ymdhs]", _LITERALS_OF_FORMAT.sub("", code).lower().split(";")[0].replace("general", "")))
