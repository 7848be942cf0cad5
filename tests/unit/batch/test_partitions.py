"""`vesper run --batch` in partitions: several files, folders of parts, and the manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyarrow import csv, ipc, parquet

import vesper
from tests.unit.batch.given import NODES, assert_same_as_calls, payments
from vesper.batch import files, job, manifest, partitioned_job, partitions
from vesper.cli.run.command import command

ROWS = 200


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(command, ["payment_decision", "--nodes", str(NODES), *map(str, words)])


def write(path: Path, table: pa.Table, group: int = 25) -> Path:
    match path.suffix:
        case ".parquet":
            parquet.write_table(table, path, row_group_size=group)
        case ".arrow":
            with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=group)
        case ".csv":
            csv.write_csv(table, path)
        case _:
            lines = [json.dumps(row, default=str, ensure_ascii=False) for row in table.to_pylist()]
            path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return path


def lines(folder: Path) -> list[dict[str, object]]:
    text = (folder / "_manifest.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (partitions, partitioned_job):
        monkeypatch.setattr(module, "ROWS_A_PART", 50)
        monkeypatch.setattr(module, "BYTES_A_PART", 4_000)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "jsonl"])
def test_a_folder_of_parts_has_the_rows_of_one_file(tmp_path: Path, kind: str) -> None:
    given = payments(ROWS)
    path, whole, folder = write(tmp_path / f"in.{kind}", given), tmp_path / f"out.{kind}", tmp_path / "out"
    assert run("--batch", path, "-o", whole).exit_code == 1  # rows with errors
    ran = run("--batch", path, "-o", folder)
    assert ran.exit_code == 1, ran.output
    parts = sorted(folder.glob(f"part-*.{kind}"))
    assert len(parts) > 1 or kind == "csv"
    files.join_parts(parts, tmp_path / f"joined.{kind}", kind)
    joined = tmp_path / f"joined.{kind}"
    if kind in ("csv", "jsonl"):
        assert joined.read_bytes() == whole.read_bytes()
    else:
        read = parquet.read_table if kind == "parquet" else lambda name: ipc.open_file(str(name)).read_all()
        assert read(joined).equals(read(whole))
    head, *parted, last = lines(folder)
    assert last == {"complete": True, "parts": len(parts), "rows": ROWS}
    assert [each["output"] for each in parted] == [each.name for each in parts]
    assert [each["sha256"] for each in parted] == [partitions.file_hash(each) for each in parts]
    assert head["of"]["semantic_hash"] == vesper.load("payment_decision", nodes=NODES).semantic_hash  # type: ignore[index]


def test_several_files_a_folder_and_a_pattern_are_one_table(tmp_path: Path) -> None:
    given = payments(ROWS)
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(4):
        write(folder / f"{number}.parquet", given.slice(number * 50, 50))
    (folder / "_SUCCESS").touch()
    (folder / "notes.txt").touch()
    asked = {
        "folder": [folder],
        "pattern": [folder / "*.parquet"],
        "files": sorted(folder.glob("*.parquet")),
        "twice": [folder, folder / "2.parquet"],
        "two spellings": [folder, folder / ".." / "in" / "2.parquet"],
    }
    node = vesper.load("payment_decision", nodes=NODES, engine="interp")
    for name, inputs in asked.items():
        out = tmp_path / f"{name}.parquet"
        ran = run(*(word for each in inputs for word in ("--batch", each)), "-o", out)
        assert ran.exit_code == 1, ran.output
        assert_same_as_calls(node, given, parquet.read_table(out))
        assert not (tmp_path / f"{name}.parquet.parts").exists()


def _stopping(monkeypatch: pytest.MonkeyPatch, after: int) -> list[str]:
    """Interrupt a job after some parts; the list is the names of parts that ran."""
    ran: list[str] = []
    original = files.write_tables

    def write_tables(path: Path, tables: Iterator[pa.Table], kind: str) -> None:
        if len(ran) == after:
            raise KeyboardInterrupt
        ran.append(path.name)
        original(path, tables, kind)

    monkeypatch.setattr(partitions, "write_tables", write_tables)
    return ran


@pytest.mark.parametrize("damage", ["none", "line", "part", "gone"])
def test_a_job_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    path, out = write(tmp_path / "in.parquet", payments(ROWS)), tmp_path / "out"
    with monkeypatch.context() as patched:
        _stopping(patched, 2)
        stopped = run("--batch", path, "-o", out, "--now", "2026-11-18T00:00:00Z")
        assert stopped.exit_code == 1
        assert "--resume continues" in stopped.output
    record = out / "_manifest.jsonl"
    if damage == "line":
        record.write_bytes(record.read_bytes()[:-30])  # as a crash leaves it
    elif damage == "part":
        (out / "part-00001.parquet").write_bytes(b"PAR1")
    elif damage == "gone":
        (out / "part-00001.parquet").unlink()
    assert "its options differ" in run("--batch", path, "-o", out, "--resume", "--keep", "amount").output
    same = ("--batch", path, "-o", out, "--resume", "--now", "2026-11-18T00:00:00Z")
    with monkeypatch.context() as patched:
        left = _stopping(patched, 9)
        resumed = run(*same)
    assert ("100 of them earlier" if damage == "none" else "50 of them earlier") in resumed.output
    assert left == [f"part-0000{number}.parquet" for number in range(2 if damage == "none" else 1, 4)]
    fresh = tmp_path / "fresh"
    run("--batch", path, "-o", fresh, "--now", "2026-11-18T00:00:00Z")
    assert {each.name: each.read_bytes() for each in out.iterdir()} == {
        each.name: each.read_bytes() for each in fresh.iterdir()
    }
    with monkeypatch.context() as patched:
        _stopping(patched, 0)
        assert "200 of them earlier" in run(*same).output  # nothing is left to run


def test_a_foreign_file_beside_the_parts_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = payments(ROWS)
    path, other = write(tmp_path / "in.parquet", given), write(tmp_path / "more.parquet", given)
    out, parts = tmp_path / "out.parquet", tmp_path / "out.parquet.parts"
    with monkeypatch.context() as patched:
        _stopping(patched, 2)
        run("--batch", path, "--batch", other, "-o", out)
    (parts / "notes.txt").write_text("mine", encoding="utf-8")
    with (parts / "_manifest.jsonl").open("a", encoding="utf-8") as record:
        record.write("[" * 100_000)  # nested too deeply to be read
    run("--batch", path, "--batch", other, "-o", out, "--resume")
    assert parquet.read_table(out).num_rows == 2 * ROWS
    assert [each.name for each in parts.iterdir()] == ["notes.txt"]


def test_changed_inputs_are_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = write(tmp_path / "in.parquet", payments(ROWS)), tmp_path / "out"
    with monkeypatch.context() as patched:
        _stopping(patched, 2)
        run("--batch", path, "-o", out)
    write(path, payments(ROWS, seed=9))
    ran = run("--batch", path, "-o", out, "--resume")
    assert ran.exit_code == 1
    assert "the files that it reads have changed" in ran.output
    assert run("--batch", path, "-o", out).exit_code == 1  # begins anew
    assert lines(out)[-1]["rows"] == ROWS
    (out / "_manifest.jsonl").write_text("[]\n", encoding="utf-8")
    assert "is damaged" in run("--batch", path, "-o", out, "--resume").output


def test_a_foreign_folder_is_let_be(tmp_path: Path) -> None:
    path, out = write(tmp_path / "in.parquet", payments(3)), tmp_path / "out"
    out.mkdir()
    mine = out / "part-00000.parquet"  # a name that a job would use, in a folder that none began
    mine.write_text("precious", encoding="utf-8")
    ran = run("--batch", path, "-o", out)
    assert ran.exit_code == 1
    assert "`part-00000.parquet` in it is of no batch" in ran.output
    assert mine.read_text(encoding="utf-8") == "precious"


def test_tables_that_do_not_fit_are_refused_before_a_row_runs(tmp_path: Path) -> None:
    given = payments(5)
    first = write(tmp_path / "a.parquet", given)
    second = write(tmp_path / "b.parquet", given.rename_columns(["amuont", *given.column_names[1:]]))
    out = tmp_path / "out"
    ran = run("--batch", first, "--batch", second, "-o", out)
    assert ran.exit_code == 1
    assert "b.parquet: its columns are not those of" in ran.output
    assert "`amount` is decimal128(18, 2) there, and no column here" in ran.output
    assert "did you mean `amount`?" in run("--batch", second, "-o", out).output
    assert not out.exists()


@pytest.mark.parametrize(
    "words,said",
    [
        (["--batch", "IN/*.parquet", "-o", "OUT"], "no file has such a name"),
        (["--batch", "IN", "-o", "OUT"], "no file in this folder ends in .parquet"),
        (["--batch", "IN/a.csv", "-o", "IN/a.csv/x"], "Not a directory"),
        (["--batch", "IN/a.csv", "-o", "FILE"], "its name is that of a folder of parts"),
    ],
)
def test_places_that_do_not_work_are_refused(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "a.csv").write_text("amount,balance,currency,country,user_age_days\n", encoding="utf-8")
    places = {"IN/a.csv": str(tmp_path / "a.csv"), "IN": str(tmp_path / "in"), "OUT": str(tmp_path / "out")}
    filled = []
    for word in words:
        for name, place in {**places, "FILE": str(tmp_path / "file")}.items():
            word = word.replace(name, place) if word.startswith(name) else word
        filled.append(word)
    ran = run(*filled)
    assert ran.exit_code == 1, ran.output
    assert said in ran.output


def test_inputs_in_the_output_folder_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", payments(3))
    ran = run("--batch", tmp_path / "*.parquet", "-o", tmp_path)
    assert ran.exit_code == 1
    assert "is in the folder that is written" in ran.output


def test_a_line_that_is_no_text_is_a_row_named_by_its_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "BYTES_A_PART", 4_000)
    path = write(tmp_path / "in.jsonl", payments(100))
    at = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"\xff\n")
    ran = run("--batch", path, "-o", tmp_path / "out")
    assert "1  failed malformed_row" in ran.output
    written = "".join(each.read_text(encoding="utf-8") for each in (tmp_path / "out").glob("*.jsonl"))
    assert f"the line at byte {at} is not UTF-8" in written


def test_parts_of_lines_have_each_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "in.jsonl", payments(40))
    whole = path.read_bytes().splitlines(keepends=True)
    for size in (1, 7, 100, 251, 4_000):
        monkeypatch.setattr(partitions, "BYTES_A_PART", size)
        found = []
        for _, begin, end, _ in partitions._ranges(path):
            found += [line for _, line in partitions._lines(path, begin, end)]
        assert found == whole


def test_the_manifest_counts_rows_with_errors(tmp_path: Path) -> None:
    path, out = write(tmp_path / "in.parquet", payments(ROWS)), tmp_path / "out"
    ran = run("--batch", path, "-o", out, "--format", "json")
    parts = lines(out)[1:-1]
    counted: dict[str, int] = {}
    for each in parts:
        for name, count in each["errors"].items():  # type: ignore[attr-defined]
            counted[name] = counted.get(name, 0) + count
    assert json.loads(ran.output)["errors"] == counted
    assert sum(counted.values()) > 0


def test_on_needs_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "in.parquet", payments(3))
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    monkeypatch.delitem(__import__("sys").modules, "vesper.integrations.ray", raising=False)
    monkeypatch.delattr("vesper.integrations.ray", raising=False)
    ran = run("--batch", path, "-o", tmp_path / "out", "--on", "ray")
    assert ran.exit_code == 1
    assert "pip install 'vesper[ray]'" in ran.output
    assert run("--batch", path, "-o", tmp_path / "out", "--on", "spark").exit_code == 2
    assert "--on requires --batch" in run("--on", "ray").output


def test_names_agree(tmp_path: Path) -> None:
    assert manifest.NAME.startswith("_")
    assert partitioned_job._OWN_FILES.fullmatch("part-00012.jsonl")
    assert not partitioned_job._OWN_FILES.fullmatch("part-00012-c0ffee.parquet")
    assert job.ROWS_A_PART == 262_144


def test_an_answer_of_an_earlier_run_is_no_input_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / "rows.jsonl", payments(20))
    assert run("--batch", folder, "-o", folder / "out.jsonl").exit_code == 1  # rows with errors
    answer = (folder / "out.jsonl").read_bytes()
    again = run("--batch", folder, "-o", folder / "out.jsonl")
    assert "out.jsonl is read, and is the file that is written" in again.output
    assert (folder / "out.jsonl").read_bytes() == answer


def test_a_part_that_begins_within_a_long_line_reads_it_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_RECORD_BYTES", 10)
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"x" * 95 + b"\n1\n22\n")
    assert [list(partitions._lines(path, begin, end)) for begin, end in ((0, 50), (50, 97), (97, 101))] == [
        [(0, b"x" * 11)], [(96, b"1\n")], [(98, b"22\n")],
    ]  # fmt: skip
