"""Tables whose rows are in files: what is read, what is refused, and that no cache keeps old rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import vesper
from vesper.compiler.pipeline import compile_file

NODE = """\
node_id: rows_v1
type: function
intent: Look a row up
inputs: {{key: {type}}}
outputs: {{success: {{found: array<integer>}}}}
flow:
  - step: found
    operation: decision_table
    hit: collect
    outputs: {{result: integer}}
    rows: {{file: {file}}}
  - return: [found]
"""


def write(folder: Path, rows: str, type_: str = "optional<integer>", file: str = "rows.csv") -> Path:
    (folder / "rows.csv").write_text(f"key,result\n{rows}", encoding="utf-8")
    path = folder / "rows_v1.vsp"
    path.write_text(NODE.format(type=type_, file=file), encoding="utf-8")
    return path


def messages(path: Path) -> str:
    return "\n".join(each.headline for each in compile_file(path)[1].sorted())


@pytest.mark.parametrize("engine", ["python", "interp", "jit"])
@pytest.mark.parametrize(
    "cell, key, is_found",
    [
        ("not(null)", 3, True),
        ("not(null)", None, False),
        ("not(5)", None, True),
        ('"< 5, >= 5"', 5, True),
        ('"< 5, >= 5"', None, False),
        ("null", None, True),
        ("", None, True),
    ],
)
def test_cells_match_and_exclude_null(tmp_path: Path, engine: str, cell: str, key: int | None, is_found: bool) -> None:
    node = vesper.load(write(tmp_path, f"{cell},1\n"), engine=engine)
    assert node(key=key).found == ([1] if is_found else [])


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_a_text_may_be_the_word_null(tmp_path: Path, engine: str) -> None:
    path = write(tmp_path, "-,1\n", "string")
    text = path.read_text(encoding="utf-8").replace("array<integer>", "array<optional<string>>")
    path.write_text(text.replace("result: integer", "result: optional<string>"), encoding="utf-8")
    (tmp_path / "rows.csv").write_text("key,result\n-,null\n-,\n", encoding="utf-8")
    assert vesper.load(path, engine=engine)(key="a").found == ["null", None]


def test_a_changed_file_changes_the_node(tmp_path: Path) -> None:
    path = write(tmp_path, "-,10\n")
    assert vesper.load(path)(key=1).found == [10]
    write(tmp_path, "-,20\n")
    assert vesper.load(path)(key=1).found == [20]
    (tmp_path / "rows.csv").unlink()
    with pytest.raises(vesper.NodeError):
        vesper.load(path)


@pytest.mark.parametrize(
    "rows, message",
    [
        ("[5..1],1\n", "rows.csv:2: column `key`"),
        ("x,1\n", "rows.csv:2: column `key`"),
        ("1,x\n", "rows.csv:2: column `result`"),
        ("1,2,3\n", "rows.csv:2: this line has 3 cells"),
    ],
)
def test_a_wrong_cell_is_named_with_its_line(tmp_path: Path, rows: str, message: str) -> None:
    assert message in messages(write(tmp_path, rows))


@pytest.mark.parametrize("file", ["../rows.csv", "/etc/passwd", "link.csv", "rows.txt", "absent.csv"])
def test_only_sheets_beside_the_node_are_read(tmp_path: Path, file: str) -> None:
    folder = tmp_path / "nodes"
    folder.mkdir()
    (tmp_path / "rows.csv").write_text("key,result\n1,2\n", encoding="utf-8")
    (folder / "rows.txt").write_text("key,result\n1,2\n", encoding="utf-8")
    (folder / "link.csv").symlink_to("/etc/passwd")
    found = messages(write(folder, "1,2\n", file=file))
    assert "file" in found
    assert "root:" not in found
