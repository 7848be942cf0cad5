"""Overlays: other values of parameters for a run, a batch or a loaded node; and the list of parameters."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import vesper as api
from vesper.cli.main import vesper

LIBRARY = """\
library_id: rates_v1
intent: Rates
parameters:
  vat:
    type: decimal
    since:
      2020-01-01: 0.19
      2022-01-01: 0.2
"""
CALLED = """\
node_id: tax_v1
type: function
intent: Work out a tax
use: [rates_v1]
inputs: {day: date, net: decimal}
outputs: {success: {tax: decimal}}
flow:
  - operation: return
    success: {tax: net * vat AT day}
"""
CALLER = """\
node_id: price_v1
type: function
intent: Add a tax
inputs: {day: date, net: decimal}
outputs: {success: {total: decimal}}
parameters:
  fee: {type: decimal, since: {2020-01-01: 1}}
flow:
  - step: tax
    operation: call_node
    node: tax
    inputs: {day: day, net: net}
  - operation: return
    success: {total: net + tax.tax + fee AT day}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes").mkdir()
    for name, text in (("rates_v1", LIBRARY), ("tax_v1", CALLED), ("price_v1", CALLER)):
        (tmp_path / "nodes" / f"{name}.vsp").write_text(text)
    assert CliRunner().invoke(vesper, ["nodes", "lock"]).exit_code == 0
    return tmp_path


def overlay(folder: Path, text: str) -> str:
    (folder / "reform.yaml").write_text(f"parameters:\n  {text}\n")
    return str(folder / "reform.yaml")


def run(*words: str) -> Result:
    inputs = ["--input", "day=2021-05-01", "--input", "net=100", "--format", "json"]
    return CliRunner().invoke(vesper, ["run", "price_v1", *inputs, *words])


@pytest.mark.parametrize("engine", ["python", "direct"])
def test_run_with_other_values(folder: Path, engine: str) -> None:
    assert '"120.00"' in run("--engine", engine).output
    path = overlay(folder, "{rates_v1.vat: {2021-01-01: 0.5}, fee: {2020-01-01: {value: 2, reference: Bill}}}")
    assert '"152.0"' in run("--engine", engine, "--overlay", path).output
    path = overlay(folder, "vat: {2021-01-01: null}")
    assert "not_in_force" in run("--engine", engine, "--overlay", path).output


def test_load_with_other_values_has_another_hash(folder: Path) -> None:
    path = overlay(folder, "vat: {2021-01-01: 0.5}")
    plain, other = api.load("price_v1"), api.load("price_v1", overlay=path)
    assert plain.semantic_hash != other.semantic_hash
    day = date(2021, 5, 1)
    assert other.call({"day": day, "net": 100})["total"] == Decimal("151.0")
    assert other.call({"day": date(2022, 5, 1), "net": 100})["total"] == Decimal("121.0"), "a later entry holds"
    assert plain.call({"day": day, "net": 100})["total"] == Decimal("120.00")
    assert api.load("price_v1").semantic_hash == plain.semantic_hash, "no cache has the overlay"
    with pytest.raises(ValueError, match="one engine"):
        api.load("price_v1", overlay=path, engine="auto")


def test_batch_with_other_values(folder: Path) -> None:
    (folder / "in.jsonl").write_text('{"day": "2021-05-01", "net": "100"}\n')
    path = overlay(folder, "vat: {2021-01-01: 0.5}")
    words = ["--batch", "in.jsonl", "-o", "out.jsonl", "--overlay", path]
    done = CliRunner().invoke(vesper, ["run", "price_v1", *words])
    assert done.exit_code == 0, done.output
    assert "151.0" in (folder / "out.jsonl").read_text()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("vax: {2021-01-01: 0.5}", "no parameter is named `vax`"),
        ("tax_v1.vat: {2021-01-01: 0.5}", "no parameter is named `tax_v1.vat`"),
        ("vat: {2021-01-01: high}", "`high` is not a value of type decimal"),
        ("vat: {2021-13-01: 0.5}", "`2021-13-01` is not a date"),
        ("vat: 0.5", "`vat` must be a mapping"),
    ],
)
def test_errors_are_at_the_overlay(folder: Path, text: str, expected: str) -> None:
    done = run("--overlay", overlay(folder, text))
    assert done.exit_code == 1
    assert expected in done.output
    assert "reform.yaml:2:" in done.output
    with pytest.raises(api.NodeError, match=r"reform\.yaml:2:"):
        api.load("price_v1", overlay=folder / "reform.yaml")


def test_list_of_parameters(folder: Path) -> None:
    def listed(*words: str) -> str:
        return CliRunner().invoke(vesper, ["nodes", "parameters", *words]).output

    assert "price_v1.fee  decimal\n  2020-01-01  1\n" in listed()
    assert "rates_v1.vat  decimal\n  2020-01-01  0.19\n  2022-01-01  0.2\n" in listed("vat")
    assert "2022-01-01" not in listed("--on", "2021-12-31")
    assert listed("--on", "2019-12-31", "fee") == "price_v1.fee  decimal\n  not in force\n\n1 parameter\n"
    (found,) = json.loads(listed("rates_v1", "--on", "2022-01-01", "--format", "json"))
    assert found["in_force"] == {"since": "2022-01-01", "value": "0.2", "reference": None}
    assert "a date is written as" in listed("--on", "soon")
