"""`vesper compare --on`: sources, exit codes, formats, refusals, and a stop in the middle."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.journalled import Place, a_place, invoke, node_text
from vesper.changes.backtest.backtest import Backtest

_FEE = """\
node_id: fee_v{version}
type: function
intent: Fee of a payment
inputs:
  amount: decimal
  note: {{type: optional<string>, default: null}}
outputs:
  success: {{fee: decimal, label: optional<string>}}
flow:
  - {{operation: return, success: {{fee: amount * {rate}, label: note}}}}
"""
ROWS = "amount,note\n10.00,<script>alert(1)</script>\n20.00,b\n0,c\nx,d\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for version, rate in ((1, "0.01"), (2, "0.02")):
        (tmp_path / f"fee_v{version}.vsp").write_text(_FEE.format(version=version, rate=rate), encoding="utf-8")
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def compare_json(*options: str, code: int = 1) -> dict[str, Any]:
    done = invoke("compare", "fee_v1.vsp", "fee_v2.vsp", "--format", "json", *options)
    assert done.exit_code == code, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_kind_of_file_gives_the_same_counts(folder: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from decimal import Decimal

    from pyarrow import parquet

    good = [("10.00", "a"), ("20.00", "b"), ("0.00", "c")]
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps({"amount": amount, "note": note}) + "\n" for amount, note in good), encoding="utf-8"
    )
    table = pa.table(
        {
            "amount": pa.array([Decimal(each) for each, _ in good], pa.decimal128(9, 2)),
            "note": [each for _, each in good],
        }
    )
    parquet.write_table(table, folder / "rows.parquet")
    with pa.OSFile(str(folder / "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    for name in ("rows.csv", "rows.jsonl", "rows.parquet", "rows.arrow"):
        found = compare_json("--on", name, "--sum", "fee")
        assert (found["runs"]["compared"], found["runs"]["changed"]) == (3, 2), name
        assert (found["sums"][0]["before"], found["sums"][0]["after"]) == ("0.3000", "0.6000"), name
        assert found["effects_performed"] == 0
    assert compare_json("--on", "rows.csv")["excluded"] == [
        {"reason": "row refused: amount malformed", "runs": 1, "names": ["rows.csv, row 4"]}
    ]
    assert compare_json("--on", "rows.csv", "--on", "rows.jsonl", "--limit", "4")["runs"]["seen"] == 4


@pytest.mark.parametrize("share, code", [("0%", 1), ("66%", 1), ("66.7%", 0), ("0.667", 0), ("100%", 0), ("0.5 %", 1)])
def test_the_exit_code_is_that_of_the_share(folder: Path, share: str, code: int) -> None:
    assert folder.exists()
    compare_json("--on", "rows.csv", "--max-changed", share, code=code)


def test_nothing_compared_is_no_success(folder: Path) -> None:
    assert folder.exists()
    done = invoke(
        "compare", "fee_v1.vsp", "fee_v2.vsp", "--on", "rows.csv", "--where", "amount > 99", "--max-changed", "100%"
    )
    assert done.exit_code == 1
    assert "no run was compared" in done.stderr


@pytest.mark.parametrize(
    "options, message",
    [
        (["--on", "rows.csv", "--max-changed", "two"], "`two` is no share"),
        (["--on", "rows.csv", "--seed", "1"], "--seed belongs to the search"),
        (["--by", "note"], "--by needs --on"),
        (["--on", "rows.csv", "--on", "journal"], "stand alone"),
        (["--on", "rows.csv", "--since", "2h"], "--since selects recorded runs"),
        (["--on", "missing.csv"], "does not exist"),
        (["--on", "rows.csv", "--by", "nothing"], "named `nothing`"),
    ],
)
def test_wrong_options_are_refused(folder: Path, options: list[str], message: str) -> None:
    assert folder.exists()
    done = invoke("compare", "fee_v1.vsp", "fee_v2.vsp", *options)
    assert done.exit_code == 2
    assert message in done.stderr


def test_the_page_is_static_and_escaped(folder: Path) -> None:
    options = ["--on", "rows.csv", "--by", "note", "--sum", "fee", "--html", "report.html"]
    found = compare_json(*options)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert {each["value"] for each in found["segments"][0]["groups"]} == {"<script>alert(1)</script>", "b", "c"}
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r"(src|href)=|https?://|url\(|@import", page)
    assert page.count("<svg") >= 6
    assert invoke("compare", "fee_v1.vsp", "fee_v2.vsp", *options).exit_code == 1  # the file exists
    assert (folder / "report.html").read_text(encoding="utf-8") == page


def test_ctrl_c_gives_the_part_that_was_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder.exists()
    run = Backtest.run

    def cut(self: Backtest, cases: Any) -> Iterator[int]:
        for number in run(self, cases):
            yield number
            if number == 2:
                raise KeyboardInterrupt

    monkeypatch.setattr(Backtest, "run", cut)
    done = invoke("compare", "fee_v1.vsp", "fee_v2.vsp", "--on", "rows.csv", "--max-changed", "100%")
    assert done.exit_code == 1
    assert done.stdout.startswith("STOPPED: these are the first 2 runs, not all of them")
    assert compare_json("--on", "rows.csv", "--max-changed", "100%")["complete"] is False


# -- the journal and traces -----------------------------------------------------------------------


@pytest.fixture
def place(folder: Path) -> Iterator[Place]:
    with a_place(folder, "sqlite:journal.db") as found:
        yield found


def test_the_journal_with_masked_examples(place: Place) -> None:
    before = node_text(sensitive=True)
    after = node_text("charge_v2", sensitive=True).replace("fee: charge.fee", "fee: 'charge.fee * 2'")
    for version, text in ((1, before), (2, after)):
        (place.folder / f"charge_v{version}.vsp").write_text(text, encoding="utf-8")
    place.run(before, "ann")
    place.left(before)
    command = ["compare", "charge_v1.vsp", "charge_v2.vsp", "--on", "journal", "--html", "report.html"]
    done = invoke(*command)
    assert done.exit_code == 1
    assert "1 run compared, 1 changed (100%); 0 effects performed" in done.stdout
    assert "not replayed: 1 run, not ended: running" in done.stdout
    assert "fee rises" in done.stdout
    assert "ann" not in done.stdout + (place.folder / "report.html").read_text(encoding="utf-8")
    assert "ann" in invoke(*command[:-2], "--reveal").stdout
    assert place.charged == ["ann"]


def test_stored_traces(folder: Path) -> None:
    (folder / "vesper.toml").write_text('[traces]\npath = "traces.db"\n', encoding="utf-8")
    for amount in ("1.00", "0"):
        assert invoke("run", "fee_v1.vsp", "-i", f"amount={amount}", "--trace").exit_code == 0
    found = compare_json("--on", "traces")
    assert (found["runs"]["compared"], found["runs"]["changed"]) == (2, 1)


def test_a_ragged_row_is_excluded_by_its_line(folder: Path) -> None:
    (folder / "rows.csv").write_text("amount,note\n10.00,a\n1.00,b,c\n20.00,d\n", encoding="utf-8")
    found = compare_json("--on", "rows.csv")
    assert (found["runs"]["compared"], found["runs"]["excluded"]) == (2, 1)
    assert "line 3" in found["excluded"][0]["reason"]
