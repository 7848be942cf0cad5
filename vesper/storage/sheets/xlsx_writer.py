"""Writer of XLSX workbooks with one or more sheets of texts.

A number that a spreadsheet program keeps digit by digit is a number cell; every other text is a text cell, so that no
program changes it. The bytes depend on the texts alone.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from vesper.storage.sheets.model import MAX_CELL_CHARACTERS, MAX_COLUMNS, MAX_LINES, SheetProblem

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]*[1-9])?")
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]|_x[0-9A-Fa-f]{4}_|\r")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/styles.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/>'
)
_SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_STYLES = (
    f'<styleSheet {_MAIN}><fonts count="2"><font/><font><b/></font></fonts>'
    '<fills count="1"><fill><patternFill patternType="none"/></fill></fills><borders count="1"><border/></borders>'
    '<cellStyleXfs count="1"><xf/></cellStyleXfs>'
    '<cellXfs count="2"><xf xfId="0"/><xf xfId="0" fontId="1" applyFont="1"/></cellXfs></styleSheet>'
)
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def write_workbook(sheets: Mapping[str, Sequence[Sequence[str]]], header_lines: int = 1) -> bytes:
    """Return the bytes of a workbook; the first lines of every sheet are bold. Raises `SheetProblem`."""
    names = [_sheet_name(name, at) for at, name in enumerate(sheets, 1)]
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{at}.xml" ContentType="{_SHEET_TYPE}"/>'
        for at in range(1, len(sheets) + 1)
    )
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{at}" r:id="rId{at}"/>' for at, name in enumerate(names, 1)
    )
    targets = [
        *((f"worksheets/sheet{at}.xml", "worksheet") for at in range(1, len(sheets) + 1)),
        ("styles.xml", "styles"),
    ]
    relations = "".join(
        f'<Relationship Id="rId{at}" Type="{_DOCUMENT}/{kind}" Target="{target}"/>'
        for at, (target, kind) in enumerate(targets, 1)
    )
    parts = {
        "[Content_Types].xml": f"{_TYPES}{overrides}</Types>",
        "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" '
        f'Type="{_DOCUMENT}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_DOCUMENT}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}">{relations}</Relationships>',
        "xl/styles.xml": _STYLES,
    }
    for at, lines in enumerate(sheets.values(), 1):
        parts[f"xl/worksheets/sheet{at}.xml"] = _sheet(lines, header_lines)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), (_HEAD + text).encode("utf-8"), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _sheet_name(name: str, at: int) -> str:
    """Return a name that a workbook can have: 1 to 31 characters, without seven special ones."""
    return re.sub(r"[\[\]:*?/\\\x00-\x1f]", " ", name).strip("' ")[:31] or f"Sheet{at}"


def _sheet(lines: Sequence[Sequence[str]], header_lines: int) -> str:
    if len(lines) > MAX_LINES:
        raise SheetProblem(0, f"a sheet has at most {MAX_LINES:,} lines")
    rows = []
    for at, cells in enumerate(lines, 1):
        if len(cells) > MAX_COLUMNS:
            raise SheetProblem(at, f"a sheet has at most {MAX_COLUMNS} columns")
        style = ' s="1"' if at <= header_lines else ""
        texts = "".join(_cell(text, f"{_letters(column)}{at}", style, at) for column, text in enumerate(cells) if text)
        rows.append(f'<row r="{at}">{texts}</row>')
    return f"<worksheet {_MAIN}><sheetData>{''.join(rows)}</sheetData></worksheet>"


def _cell(text: str, place: str, style: str, line: int) -> str:
    if _NUMBER.fullmatch(text) and sum(each.isdigit() for each in text.lstrip("-0.")) <= 15:
        return f'<c r="{place}"{style}><v>{text}</v></c>'
    if len(text) > MAX_CELL_CHARACTERS:
        raise SheetProblem(line, f"a cell has at most {MAX_CELL_CHARACTERS} characters")
    if _NOT_IN_XML.search(text):
        raise SheetProblem(line, "a cell has a character that a workbook cannot hold")
    return f'<c r="{place}" t="inlineStr"{style}><is><t xml:space="preserve">{escape(text)}</t></is></c>'


def _letters(column: int) -> str:
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
