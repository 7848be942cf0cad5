"""A row that cannot be read has an error with its line, and the others run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet

from vesper.batch import csv_records, files, job
from vesper.cli.run.command import command

NODE = """\
node_id: next_v1
type: function
intent: Count on
inputs: {a: integer, b: optional<string>}
outputs: {success: {c: integer, d: optional<string>}}
flow:
  - operation: return
    success: {c: a + 1, d: b}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "next_v1.vsp").write_text(NODE, encoding="utf-8")
    return tmp_path


def run(folder: Path, name: str, *words: str) -> Result:
    arguments = [str(folder / "next_v1.vsp"), "--batch", str(folder / name), "-o", str(folder / "out.parquet"), *words]
    return CliRunner().invoke(command, arguments)


def rows_of(folder: Path) -> list[object]:
    """Return `c` of rows that ran, and the message of the others."""
    found = parquet.read_table(folder / "out.parquet").to_pylist()
    return [row["c"] if row["error"] is None else row["error"]["message"] for row in found]


@pytest.mark.parametrize(
    "text, expected",
    [
        (b"a,b\n1,x\n2\n3,y\n4,z,9\n5,w\n", [2, "line 3 has 1 cell, and the header 2", 4,
         "line 5 has 3 cells, and the header 2", 6]),
        (b"\xef\xbb\xbfa,b\r\n1,x\r\n\r\n2\r\n3,y", [2, "line 4 has 1 cell, and the header 2", 4]),
        (b'a,b\n1,"x\ny"\n2\n', [2, "line 4 has 1 cell, and the header 2"]),
        (b'a,b\n1,"x"y\n2,z\n', ["line 2 has text after the end of a quoted cell", 3]),
        (b'a,b\n1,"open\n2,y\n3,z\n', ["line 2 has a quoted cell without an end", 3, 4]),
        (b'a,b\n1,"open\n2,"y"\n3,z\n', ["line 2 has text after the end of a quoted cell", 3, 4]),
        (b'a,b\n1,5" pipe\n2,y\n', [2, 3]),
        (b"a,b\n1,\xff\n2,y\n", ["line 2 is not UTF-8: invalid start byte at byte 3", 3]),
        (b"a,b\n1,x\x00y\n2,y\n", [2, 3]),
        (b"a,b\r1,x\r2\r", [2, "line 3 has 1 cell, and the header 2"]),
        (b"a,b\n", []),
    ],
    ids=["ragged", "BOM, CRLF and blank lines", "quote over lines", "text after a quote", "open quote",
         "open quote before another", "quote inside a cell", "no UTF-8", "NUL", "CR", "no rows"],
)  # fmt: skip
def test_csv(folder: Path, text: bytes, expected: list[object]) -> None:
    (folder / "given.csv").write_bytes(text)
    ran = run(folder, "given.csv")
    assert ran.exit_code == (1 if any(isinstance(each, str) for each in expected) else 0), ran.output
    assert rows_of(folder) == expected
    if ran.exit_code:
        assert "failed malformed_row" in ran.output


def test_the_error_has_a_code(folder: Path) -> None:
    (folder / "given.csv").write_bytes(b"a,b\n1\n")
    run(folder, "given.csv")
    (row,) = parquet.read_table(folder / "out.parquet").to_pylist()
    assert (row["c"], row["d"]) == (None, None)
    assert row["error"] == {
        "kind": "failed",
        "code": "malformed_row",
        "where": None,
        "message": "line 2 has 1 cell, and the header 2",
    }


def test_a_huge_line_is_one_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "MAX_RECORD_BYTES", 10_000)
    monkeypatch.setattr(csv_records, "BLOCK_BYTES", 4_096)
    (folder / "given.csv").write_bytes(b"a,b\n1,x\n2," + b"y" * 50_000 + b'\n3,z\n4,"' + b"w" * 50_000 + b"\n5,v\n")
    run(folder, "given.csv")
    long = "is longer than 10,000 bytes"
    assert rows_of(folder) == [2, f"line 3 {long}", 4, f"line 5 {long}", 6]


@pytest.mark.parametrize("block", [16, 61, 4_096])
def test_blocks_do_not_show(folder: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records, line ends and quotes may cross the end of a block."""
    monkeypatch.setattr(csv_records, "BLOCK_BYTES", block)
    lines = [b'%d,"x\r\n""%d"""' % (n, n) if n % 3 else b"%d" % n if n % 2 else b"%d,y" % n for n in range(60)]
    (folder / "given.csv").write_bytes(b"a,b\r\n" + b"\r\n".join(lines))
    run(folder, "given.csv")
    line, expected = 2, []
    for n in range(60):
        expected.append(n + 1 if n % 3 or not n % 2 else f"line {line} has 1 cell, and the header 2")
        line += 2 if n % 3 else 1
    assert rows_of(folder) == expected


def test_a_continued_job_has_the_same_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "ROWS_A_PART", 3)
    text = b"a,b\n" + b"".join(b"%d\n" % n if n % 4 == 1 else b"%d,x\n" % n for n in range(20))
    (folder / "given.csv").write_bytes(text)
    run(folder, "given.csv")
    whole = rows_of(folder)
    (folder / "out.parquet").unlink()
    count = 0
    write = files.write_part

    def stop(*arguments: object) -> None:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        write(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(job, "write_part", stop)
        assert "--resume" in run(folder, "given.csv").output
    run(folder, "given.csv", "--resume")
    assert rows_of(folder) == whole
    assert sum(isinstance(each, str) for each in whole) == 5


def test_json_lines(folder: Path) -> None:
    lines = [b'{"a": 1, "id": 1}', b"", b"no json", b'{"a": 2, "b": "\xff"}', b"[1]", b'{"a": 5, "id": "x"}']
    (folder / "given.jsonl").write_bytes(b"\n".join(lines))
    assert run(folder, "given.jsonl", "--keep", "id").exit_code == 1
    first, second, third, fourth, last = rows_of(folder)
    assert (first, last) == (2, 6)
    assert "is no JSON" in str(second)
    assert third == "line 4 is not UTF-8: invalid start byte at byte 16"
    assert "expected a JSON object" in str(fourth)
    kept = parquet.read_table(folder / "out.parquet").column("id").to_pylist()
    assert kept == ["1", None, None, None, "x"]


@pytest.mark.parametrize("text", [b"", b"\n\n", b'"a', b"\xef\xbb\xbf"])
def test_a_file_without_a_header_is_refused(folder: Path, text: bytes) -> None:
    (folder / "given.csv").write_bytes(text)
    ran = run(folder, "given.csv")
    assert ran.exit_code == 1
    assert "names of the columns" in ran.output


def test_the_share_is_that_of_the_bytes(folder: Path) -> None:
    (folder / "given.csv").write_bytes(b"a,b\n" + b"1,x\n" * 100)
    ran = run(folder, "given.csv", "--format", "json")
    assert json.loads(ran.output)["rows"] == 100
