"""XLSX workbooks: what is written reads back, numbers keep their digits, hostile files end at a limit."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import pytest

from vesper.language.tables.files import FileProblem
from vesper.language.tables.files import read_sheet as read_rows_file
from vesper.storage.sheets.model import SheetProblem, date_text, number_text
from vesper.storage.sheets.xlsx_reader import read_sheet, sheet_names
from vesper.storage.sheets.xlsx_writer import write_workbook

_PIECES = [
    "0.1",
    "-12",
    "007",
    "1.50",
    "1e5",
    "a",
    "é😀",
    "<&>\"'",
    "  x ",
    "a\nb",
    "12345678901234567",
    "true",
    "=1+1",
]


def workbook(sheet: str, shared: str = "", styles: str = "", book: str = "") -> bytes:
    """Return a workbook with the XML of one sheet."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns:r="{relation}">{book}<sheets><sheet name="Rates" sheetId="1" r:id="rId7"/>'
            "</sheets></workbook>",
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            '<Relationships><Relationship Id="rId7" Target="worksheets/one.xml"/></Relationships>',
        )
        archive.writestr("xl/worksheets/one.xml", sheet)
        if shared:
            archive.writestr("xl/sharedStrings.xml", shared)
        if styles:
            archive.writestr("xl/styles.xml", styles)
    return buffer.getvalue()


def rows(xml: str, **parts: str) -> list[tuple[str, ...]]:
    found = read_sheet(workbook(f"<worksheet><sheetData>{xml}</sheetData></worksheet>", **parts))
    return [cells for _, cells in found.lines]


def test_what_is_written_reads_back() -> None:
    drawn = random.Random(7)
    for _ in range(40):
        lines = [[drawn.choice(_PIECES) for _ in range(drawn.randint(1, 30))] for _ in range(drawn.randint(1, 20))]
        found = read_sheet(write_workbook({"A": [["other"]], "Rates": lines}), "Rates")
        assert [list(cells) for _, cells in found.lines] == lines
        assert [line for line, _ in found.lines] == list(range(1, len(lines) + 1))


def test_the_bytes_depend_on_the_texts_alone() -> None:
    assert write_workbook({"A": [["x", "1"]]}) == write_workbook({"A": [["x", "1"]]})
    assert sheet_names(write_workbook({"A": [["x"]], "B/C": [["y"]]})) == ["A", "B C"]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("0.1", "0.1"),
        ("0.30000000000000004", "0.3"),
        ("1.1000000000000001", "1.1"),
        ("1E-3", "0.001"),
        ("1.5E+3", "1500"),
        ("-0.070000000000000007", "-0.07"),
        ("123456789012345678", "123456789012346000"),
        ("1.50", "1.50"),
    ],
)
def test_a_number_keeps_the_digits_that_excel_shows(text: str, expected: str) -> None:
    assert number_text(text) == expected
    assert rows(f'<row r="1"><c r="A1"><v>{text}</v></c></row>') == [(expected,)]


@pytest.mark.parametrize(
    "serial, is_1904, expected",
    [
        ("45351", False, "2024-02-29"),
        ("45351.5", False, "2024-02-29T12:00:00Z"),
        ("0.75", False, "18:00:00"),
        ("1", False, "1900-01-01"),
        ("61", False, "1900-03-01"),
        ("43889", True, "2024-02-29"),
    ],
)
def test_a_date_is_written_as_iso_8601(serial: str, is_1904: bool, expected: str) -> None:
    assert date_text(serial, is_1904=is_1904) == expected


def test_kinds_of_cells() -> None:
    formats = '<numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/></numFmts>'
    styles = f'<s>{formats}<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs></s>'
    shared = "<sst><si><t>one</t></si><si><r><t>t</t></r><r><t>wo</t></r><rPh><t>no</t></rPh></si></sst>"
    xml = (
        '<row r="2"><c r="A2" t="s"><v>0</v></c><c r="C2" t="s"><v>1</v></c><c r="D2" t="b"><v>1</v></c></row>'
        '<row r="5"><c r="A5" s="1"><v>45351</v></c><c r="B5" t="str"><f>A1</f><v>x</v></c>'
        "<c><is><t>y</t></is></c></row>"
    )
    assert rows(xml, shared=shared, styles=styles) == [("one", "", "two", "true"), ("2024-02-29", "x")]


@pytest.mark.parametrize(
    "xml, message",
    [
        ('<row r="1"><c r="A1" t="e"><v>#N/A</v></c></row>', "has the error"),
        ('<row r="1"><c r="A1"><f>1+1</f></c></row>', "formula has no value"),
        ('<row r="1"><c r="A1"><v>1e99999</v></c></row>', "is no number"),
        ('<row r="1"><c r="A1"><v>NaN</v></c></row>', "is no number"),
        ('<row r="1"><c r="ZZ1"><v>1</v></c></row>', "columns"),
        ('<row r="1"><c r="A1" t="s"><v>5</v></c></row>', "does not have"),
        ("<x>" * 100 + "</x>" * 100, "nested too deep"),
    ],
)
def test_a_cell_that_cannot_be_read_is_an_error(xml: str, message: str) -> None:
    with pytest.raises(SheetProblem, match=message):
        rows(xml)


def test_entities_are_refused() -> None:
    for encoding in ("utf-8", "utf-16"):
        bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><worksheet>&b;</worksheet>'
        buffer = io.BytesIO(workbook("<a/>"))
        with zipfile.ZipFile(buffer, "a") as archive:
            archive.writestr("xl/sharedStrings.xml", bomb.encode(encoding))
        with pytest.raises(SheetProblem, match="document type declaration"):
            read_sheet(buffer.getvalue())


def test_a_bomb_of_zeros_ends_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.storage.sheets.xlsx_reader.MAX_TOTAL_BYTES", 1_000_000)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"<a>" + b" " * 5_000_000 + b"</a>")
    with pytest.raises(SheetProblem, match="too large"):
        read_sheet(buffer.getvalue())


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"PK\x03\x04" + b"\x00" * 100])
def test_what_is_no_workbook_is_refused(content: bytes) -> None:
    with pytest.raises(SheetProblem):
        read_sheet(content)


def test_damaged_workbooks_never_raise_anything_else() -> None:
    drawn = random.Random(3)
    whole = write_workbook({"A": [["x", "1", "y"] for _ in range(5)]})
    for _ in range(1000):
        damaged = bytearray(whole)
        for _ in range(drawn.randint(1, 4)):
            damaged[drawn.randrange(len(damaged))] = drawn.randrange(256)
        try:
            read_sheet(bytes(damaged))
        except SheetProblem:
            continue


def test_rows_of_a_table_come_from_a_workbook(tmp_path: Path) -> None:
    lines = [["amount", "rate", "annotation"], ["< 10", "0.5", "small"], ["-", "1.50"]]
    (tmp_path / "rates.xlsx").write_bytes(write_workbook({"Other": [["x"]], "Rates": lines}))
    found, _ = read_rows_file(tmp_path / "rates.xlsx", "Rates")
    assert found.lines == [(1, lines[0]), (2, lines[1]), (3, ["-", "1.50", ""])]
    with pytest.raises(FileProblem, match="no sheet `Missing`"):
        read_rows_file(tmp_path / "rates.xlsx", "Missing")
