from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyarrow import csv, ipc, parquet

import vesper
from tests.unit.batch.given import NODES, assert_same_as_calls, payments
from vesper.batch import files, job
from vesper.cli.run.command import command


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(command, ["payment_decision", "--nodes", str(NODES), *map(str, words)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def given_file(folder: Path, kind: str, table: pa.Table) -> Path:
    path = folder / f"given.{kind}"
    match kind:
        case "parquet":
            parquet.write_table(table, path, row_group_size=70)
        case "arrow":
            with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=90)
        case "csv":
            csv.write_csv(table, path)
        case _:
            lines = [json.dumps(row, default=str) for row in table.to_pylist()]
            path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_of_types_are_run_row_by_row(folder: Path, kind: str) -> None:
    given = payments(200)
    out = folder / f"out.{kind}"
    ran = run("--batch", given_file(folder, kind, given), "-o", out)
    assert ran.exit_code == 1, ran.output
    answer = parquet.read_table(out) if kind == "parquet" else ipc.open_file(str(out)).read_all()
    node = vesper.load("payment_decision", nodes=NODES, engine="interp")
    errors = assert_same_as_calls(node, given, answer)
    assert f"{errors} rows have an error:" in ran.output
    assert "failed bad_input" in ran.output
    assert not (folder / f"out.{kind}.parts").exists()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_files_of_texts_are_exact(folder: Path, kind: str) -> None:
    given = payments(100, is_fine=True)
    out = folder / f"out.{kind}"
    ran = run("--batch", given_file(folder, kind, given), "-o", out, "--format", "json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.output)["rows"] == 100
    node = vesper.load("payment_decision", nodes=NODES, engine="interp")
    expected = [node.call(row) for row in given.to_pylist()]
    if kind == "jsonl":
        found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        assert all(each["error"] is None for each in found)
    else:
        strings = {name: pa.string() for name in ("decision", "fee", "risk", "new_balance")}
        found = csv.read_csv(out, convert_options=csv.ConvertOptions(column_types=strings)).to_pylist()
    assert [each["fee"] for each in found] == [str(each["fee"]) for each in expected]
    assert [str(each["risk"]) for each in found] == [str(each["risk"]) for each in expected]


def test_what_does_not_fit_is_told_row_by_row(folder: Path) -> None:
    path = folder / "given.csv"
    path.write_text(
        "amount,balance,currency,country,user_age_days,flagged\n"
        "1.50,10,USD,DE,5,\n"  # not given: the default
        "1.50,10,USD,DE,five,true\n"
        ",10,USD,DE,5,true\n",
        encoding="utf-8",
    )
    out = folder / "out.jsonl"
    ran = run("--batch", path, "-o", out)
    assert ran.exit_code == 1
    first, second, third = (json.loads(line) for line in out.read_text(encoding="utf-8").splitlines())
    assert first["error"] is None
    assert "user_age_days" in second["error"]["message"]
    assert "malformed" in second["error"]["message"]
    assert "amount: missing; expected decimal" in third["error"]["message"]
    lines = folder / "given.jsonl"
    lines.write_text('{"amount": 1.5}\nno json\n', encoding="utf-8")
    run("--batch", lines, "-o", out)
    first, second = (json.loads(line) for line in out.read_text(encoding="utf-8").splitlines())
    assert "balance: missing" in first["error"]["message"]
    assert second["error"]["code"] == "bad_input"


def test_a_job_that_was_stopped_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = payments(100)
    path, out = given_file(folder, "parquet", given), folder / "out.parquet"
    written: list[str] = []
    original = files.write_part

    def stopping(path: Path, table: pa.Table, kind: str) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(path.name)
        original(path, table, kind)

    monkeypatch.setattr(job, "write_part", stopping)
    monkeypatch.setattr(job, "ROWS_A_PART", 30)
    stopped = run("--batch", path, "-o", out)
    assert stopped.exit_code == 1
    assert "--resume continues" in stopped.output
    assert not out.exists()
    assert written == ["000000.parquet", "000001.parquet"]
    monkeypatch.setattr(job, "write_part", original)
    other = run("--batch", path, "-o", out, "--resume", "--keep", "amount")
    assert other.exit_code == 1
    assert "its options differ" in other.output
    resumed = run("--batch", path, "-o", out, "--resume")
    assert "100 rows (60 of them earlier)" in resumed.output
    node = vesper.load("payment_decision", nodes=NODES, engine="interp")
    assert_same_as_calls(node, given, parquet.read_table(out))


def test_a_changed_file_is_not_gone_on_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = given_file(folder, "parquet", payments(10)), folder / "out.parquet"
    monkeypatch.setattr(job, "join_parts", _stop)
    assert run("--batch", path, "-o", out).exit_code == 1
    parquet.write_table(payments(11, seed=9), path)
    ran = run("--batch", path, "-o", out, "--resume")
    assert "the file that it reads has changed" in ran.output


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "words,said",
    [
        (["--batch", "-", "-o", "x.csv"], "replace `-` by a file name"),
        (["--batch", "x.csv", "-o", "-"], "replace `-` by a file name"),
        (["--batch", "x.csv"], "needs -o OUT"),
        (["--batch", "x.csv", "-o", "x.csv"], "name another one"),
        (["--batch", "x.csv", "-o", "y.csv", "-i", "amount=1"], "--batch cannot be combined with --input"),
        (["--batch", "x.csv", "-o", "y.csv", "--engine", "python"], "runs on the direct engine"),
        (["--batch", "x.csv", "-o", "y.csv", "--decimals", "many"], "a number of decimal places"),
        (["--batch", "x.csv", "-o", "y.csv", "--decimals", "39"], "from 0 to 38"),
        (["--batch", "x.csv", "-o", "y.csv", "--keep", "id", "--keep", "id"], "--keep id is given twice"),
        (["-o", "y.csv"], "--output requires --batch"),
    ],
    ids=["stdin", "stdout", "no-out", "same", "input", "engine", "decimals", "many-decimals", "keep", "no-batch"],
)
def test_usage_is_refused(words: list[str], said: str) -> None:
    ran = run(*words)
    assert ran.exit_code == 2
    assert said in ran.output


@pytest.mark.parametrize(
    "given,out,said",
    [
        ("nothing.csv", "out.csv", "nothing.csv"),
        ("given.txt", "out.csv", "ends in .parquet, .arrow, .csv, .jsonl"),
        ("given.csv", "out.xlsx", "ends in .parquet, .arrow, .csv, .jsonl"),
        ("given.parquet", "out.csv", "given.parquet"),
    ],
)
def test_files_that_are_none_are_refused(folder: Path, given: str, out: str, said: str) -> None:
    if given != "nothing.csv":
        (folder / given).write_text("amount\n1\n", encoding="utf-8")
    ran = run("--batch", folder / given, "-o", folder / out)
    assert ran.exit_code == 1, ran.output
    assert said in ran.output


def test_without_pyarrow_it_says_what_to_install(folder: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; from vesper.cli.run.command import command; "
        f"command(['payment_decision', '--nodes', {str(NODES)!r}, '--batch', 'x.csv', '-o', 'y.csv'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder)
    assert ran.returncode == 1
    assert "pip install 'vesper[batch]'" in ran.stderr


def test_a_row_with_an_error_in_csv_is_counted_in_a_process_that_has_imported_nothing_else(folder: Path) -> None:
    path = folder / "given.csv"
    path.write_text("amount,balance,currency,country,user_age_days\n0,1,USD,DE,5\n", encoding="utf-8")
    words = ["run", "payment_decision", "--nodes", str(NODES), "--batch", str(path), "-o", str(folder / "out.csv")]
    ran = subprocess.run([sys.executable, "-m", "vesper", *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    assert "1 row has an error:\n  1  contract_broken precondition" in ran.stdout


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "jsonl"])
@pytest.mark.parametrize("written", ["parquet", "arrow", "csv", "jsonl"])
def test_a_file_without_rows_has_an_answer_without_rows(folder: Path, kind: str, written: str) -> None:
    path, out = given_file(folder, kind, payments(0)), folder / f"out.{written}"
    ran = run("--batch", path, "-o", out)
    assert ran.exit_code == 0, ran.output
    assert ran.output.startswith("0 rows in")
    assert not (folder / f"out.{written}.parts").exists()
    names = ["decision", "fee", "risk", "new_balance", "error"]
    if written == "parquet":
        assert parquet.read_table(out).column_names == names
    elif written == "arrow":
        assert ipc.open_file(str(out)).read_all().column_names == names
    elif written == "csv":
        assert out.read_text(encoding="utf-8").startswith('"decision","fee","risk","new_balance","error.kind"')
    else:
        assert out.read_bytes() == b""


def test_a_folder_that_no_batch_filled_is_let_be(folder: Path) -> None:
    path = given_file(folder, "parquet", payments(3, is_fine=True))
    mine = folder / "out.csv.parts" / "thesis.txt"
    mine.parent.mkdir()
    mine.write_text("precious", encoding="utf-8")
    ran = run("--batch", path, "-o", folder / "out.csv")
    assert ran.exit_code == 1
    assert "`thesis.txt` in it is of no batch" in ran.output
    assert mine.read_text(encoding="utf-8") == "precious"


def test_two_processes_do_not_write_one_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = given_file(folder, "parquet", payments(10, is_fine=True)), folder / "out.parquet"
    second: list[Result] = []
    original = files.write_part

    def meanwhile(part: Path, table: pa.Table, kind: str) -> None:
        if not second:
            second.append(run("--batch", path, "-o", out))
        original(part, table, kind)

    monkeypatch.setattr(job, "write_part", meanwhile)
    first = run("--batch", path, "-o", out)
    assert first.exit_code == 0, first.output
    assert second[0].exit_code == 1
    assert "another process is writing" in second[0].output
    assert parquet.read_table(out).num_rows == 10


def test_a_folder_is_not_written_over(folder: Path) -> None:
    path, out = given_file(folder, "parquet", payments(3, is_fine=True)), folder / "out.csv"
    out.mkdir()
    ran = run("--batch", path, "-o", out)
    assert ran.exit_code == 1
    assert "is a folder" in ran.output
    assert not (folder / "out.csv.parts").exists()


def test_a_table_that_is_refused_leaves_nothing_behind(folder: Path) -> None:
    path = folder / "given.csv"
    path.write_text("amuont\n1\n", encoding="utf-8")
    ran = run("--batch", path, "-o", folder / "out.csv")
    assert ran.exit_code == 1
    assert "did you mean `amount`?" in ran.output
    assert [each.name for each in folder.iterdir()] == ["given.csv"]


@pytest.mark.parametrize(
    "state", ["[]", "{}", "no json", '{"of": {}, "start": "x", "done": [{"rows": "3", "errors": {}}]}']
)
def test_a_damaged_state_is_told(folder: Path, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = given_file(folder, "parquet", payments(10)), folder / "out.parquet"
    with monkeypatch.context() as patched:
        patched.setattr(job, "join_parts", _stop)
        run("--batch", path, "-o", out)
    (folder / "out.parquet.parts" / "state.json").write_text(state, encoding="utf-8")
    ran = run("--batch", path, "-o", out, "--resume")
    assert ran.exit_code == 1
    assert "is damaged" in ran.output
    assert not out.exists()


def test_a_part_that_is_gone_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = given_file(folder, "parquet", payments(10)), folder / "out.parquet"
    with monkeypatch.context() as patched:
        patched.setattr(job, "join_parts", _stop)
        run("--batch", path, "-o", out)
    (folder / "out.parquet.parts" / "000000.parquet").unlink()
    ran = run("--batch", path, "-o", out, "--resume")
    assert ran.exit_code == 1
    assert "000000.parquet is gone" in ran.output
    assert run("--batch", path, "-o", out).exit_code == 1  # rows with errors, and all of them
    assert parquet.read_table(out).num_rows == 10


def test_members_of_json_lines_are_kept(folder: Path) -> None:
    path, out = folder / "given.jsonl", folder / "out.jsonl"
    payment = '"amount": 1.10, "balance": 10, "currency": "USD", "country": "DE", "user_age_days": 5'
    path.write_text(
        '{"id": "p\\u0031", "tag": {"a": [1.50]}, ' + payment + "}\n"
        "{" + payment + ', "id": 7}\n'
        '{"id": null, ' + payment + ', "amount": 2}\n'
        "no json\n",
        encoding="utf-8",
    )
    ran = run("--batch", path, "-o", out, "--keep", "id", "--keep", "tag")
    assert ran.exit_code == 1, ran.output
    first, second, third, fourth = (json.loads(line) for line in out.read_text(encoding="utf-8").splitlines())
    assert list(first)[:2] == ["id", "tag"]
    assert (first["id"], first["tag"], first["error"]) == ("p1", '{"a": [1.50]}', None)
    assert (second["id"], second["tag"], second["error"]) == ("7", None, None)
    assert third["id"] is None
    assert "occurs twice" in third["error"]["message"]
    assert fourth["error"]["code"] == "bad_input"


def test_a_member_is_not_kept_under_the_name_of_an_output(folder: Path) -> None:
    path = folder / "given.jsonl"
    path.write_text('{"fee": 1}\n', encoding="utf-8")
    ran = run("--batch", path, "-o", folder / "out.jsonl", "--keep", "fee")
    assert ran.exit_code == 1
    assert "`fee` is kept, and is an output" in ran.output


_PARTS = """type: function
intent: Give lists and maps
inputs:
  v: integer
outputs:
  success: {list: "array<decimal>", names: "map<string, integer>", days: "map<integer, date>"}
flow:
  - operation: return
    success:
      list: "[1.10, 2]"
      names: "{'a': v}"
      days: "{3: date('2026-11-16')}"
"""


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_lists_and_maps_are_written_as_json_has_them(folder: Path, kind: str) -> None:
    (folder / "parts_v1.vsp").write_text(f"node_id: parts_v1\n{_PARTS}", encoding="utf-8")
    path, out = folder / "given.jsonl", folder / f"out.{kind}"
    path.write_text('{"v": 3}\n', encoding="utf-8")
    words = [str(folder / "parts_v1.vsp"), "--batch", str(path), "-o", str(out)]
    ran = CliRunner().invoke(command, words)
    assert ran.exit_code == 0, ran.output
    if kind == "jsonl":
        (row,) = (json.loads(line) for line in out.read_text(encoding="utf-8").splitlines())
    else:
        (read,) = csv.read_csv(out).to_pylist()
        row = {name: json.loads(read[name]) for name in ("list", "names", "days")}
    assert row["list"] == ["1.10", "2"]
    assert row["names"] == {"a": 3}
    assert row["days"] == [[3, "2026-11-16"]]


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "jsonl"])
def test_how_far_it_is_is_known_of_every_file(folder: Path, kind: str) -> None:
    path = given_file(folder, kind, payments(2_000, is_fine=True))
    shares: list[float] = []
    node = vesper.load("payment_decision", nodes=NODES, engine="interp")

    def runs(source: files.Source, table: pa.Table, start: str) -> pa.Table:
        return node.run_batch(
            pa.table({"amount": ["1"], "balance": ["2"], "currency": ["USD"], "country": ["DE"], "user_age_days": [1]})
        )

    asked = job.Job(path, folder / "out.csv", "n", "h", {}, "2026-11-16T00:00:00Z", runs, rows_a_part=500)
    asked.do(False, lambda progress: shares.append(progress.share))
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    assert len(shares) == 6


def test_a_line_that_is_no_text_is_named(folder: Path) -> None:
    path = folder / "given.jsonl"
    path.write_bytes(b'{"amount": 1}\n\xff\n')
    ran = run("--batch", path, "-o", folder / "out.csv")
    assert ran.exit_code == 1
    assert "1  failed malformed_row" in ran.output
    assert "line 2 is not UTF-8: invalid start byte at byte 1" in (folder / "out.csv").read_text(encoding="utf-8")
