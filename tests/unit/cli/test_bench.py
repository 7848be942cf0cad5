"""`vesper bench`, with rounds that are as short as they may be."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.console import ROOT, parse_session, run_session
from vesper.cli.bench import command as bench
from vesper.cli.bench.interpreter import this_interpreter
from vesper.compiler import Compiled
from vesper.engines.engine import Limits
from vesper.engines.outcome import Outcome, Returned
from vesper.engines.registry import ENGINES

PAYMENT = {"amount": "50.00", "balance": "100.00", "currency": "USD", "country": "DE", "user_age_days": 400}


def run(*arguments: str, quick: bool = True) -> Result:
    given = [*arguments, "--nodes", str(ROOT / "nodes"), "--seconds", "0.01"]
    return CliRunner().invoke(bench.command, [*given, "--no-first-call"] if quick else given)


def test_every_engine_with_ratios_to_the_reference() -> None:
    ran = run("payment_decision", "--format", "json")
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert told["node"] == "payment_decision_v1"
    assert told["base"] == "python"
    assert list(told["engines"]) == list(ENGINES)
    assert told["engines"]["python"]["ratio"] == 1.0
    for each in told["engines"].values():
        assert 0 < each["best_ns"] <= each["median_ns"]
        assert each["spread"] >= 1
        assert each["rounds"] >= 5
        assert each["first_call_ms"] is None


def test_a_table_for_people() -> None:
    ran = run("payment_decision")
    heading, _, columns, *rows = ran.stdout.splitlines()
    assert heading.startswith("payment_decision_v1, 1 input in turn, ")
    assert columns.split() == ["engine", "best", "median", "spread", "of", "python"]
    assert [row.split()[0] for row in rows] == list(ENGINES)


def test_the_first_call_is_timed_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_STARTS", 1)
    ran = run("payment_decision", "--engine", "interp", "--format", "json", quick=False)
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)["engines"]["interp"]
    assert told["first_call_ms"] > 0
    assert told["import_ms"] > 0


@pytest.mark.parametrize(
    "name, text, count",
    [
        ("one.json", json.dumps(PAYMENT), 1),
        ("some.json", json.dumps([PAYMENT, {**PAYMENT, "amount": "9.99"}]), 2),
        ("lines.jsonl", f"{json.dumps(PAYMENT)}\n\n{json.dumps(PAYMENT)}\n", 2),
    ],
)
def test_inputs_of_a_file(tmp_path: Path, name: str, text: str, count: int) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    ran = run("payment_decision", "--input", str(tmp_path / name), "--engine", "interp", "--format", "json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["inputs"] == count


@pytest.mark.parametrize(
    "text, said",
    [
        ("[]", "the file has no inputs"),
        ("[3]", "input 1 must be a JSON object"),
        ('{"amount": }', "in.json:1:12: "),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "in.json").write_text(text, encoding="utf-8")
    ran = run("payment_decision", "--input", str(tmp_path / "in.json"))
    assert ran.exit_code == 2
    assert said in ran.stderr


def test_a_pair_is_no_file() -> None:
    ran = run("payment_decision", "--input", "amount=5.00")
    assert ran.exit_code == 2
    assert "no such file" in ran.stderr
    assert "as JSON" in ran.stderr


def test_an_input_that_does_not_return_is_named(tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    file.write_text(json.dumps([PAYMENT, {**PAYMENT, "amount": "0"}]), encoding="utf-8")
    ran = run("payment_decision", "--input", str(file))
    assert ran.exit_code == 1
    assert "input 2 does not return: precondition 1 broken: `amount > 0`" in ran.stderr


def test_cases_by_name() -> None:
    assert run("order_pricing", "--case", "fifty pieces earn a discount", "--engine", "interp").exit_code == 0
    ran = run("order_pricing", "--case", "fifty")
    assert ran.exit_code == 2
    assert "has no case `fifty`" in ran.stderr
    ran = run("payment_decision", "--case", "nothing is worth zero")
    assert ran.exit_code == 1
    ran = run("payment_decision", "--case", "x", "--input", "y.json")
    assert "give --input or --case, not both" in ran.stderr


def test_a_node_with_effects_runs_its_cases_with_their_answers() -> None:
    ran = run("checkout", "--engine", "interp")
    assert ran.exit_code == 0, ran.output
    assert "with answers" in ran.stdout
    ran = run("checkout", "--input", "y.json")
    assert ran.exit_code == 2
    assert "has effects" in ran.stderr


def test_engines_that_disagree_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ENGINES["interp"]

    class Lying:
        name = "interp"

        def load(self, compiled: Compiled) -> Any:
            program = honest.load(compiled)

            class Program:
                semantic_hash = program.semantic_hash

                def call(
                    self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None
                ) -> Outcome:
                    found = program.call(inputs, now, limits)
                    assert isinstance(found, Returned)
                    return Returned({**found.value, "fee": Decimal("1.76")})

            return Program()

    monkeypatch.setitem(ENGINES, "interp", Lying())
    ran = run("payment_decision")
    assert ran.exit_code == 3
    assert "THE ENGINES DISAGREE on input 1" in ran.stderr
    assert "fee=1.76" in ran.stderr
    assert not ran.stdout


@pytest.mark.parametrize("is_optimised", [True, False], ids=["optimised", "not optimised"])
def test_a_python_that_is_not_optimised_is_warned_of(monkeypatch: pytest.MonkeyPatch, is_optimised: bool) -> None:
    monkeypatch.setattr(bench, "this_interpreter", lambda: replace(this_interpreter(), is_optimised=is_optimised))
    ran = run("payment_decision", "--engine", "interp", "--format", "json")
    assert ("warning: " in ran.stderr) is not is_optimised
    assert json.loads(ran.stdout)["python"]["optimised"] is is_optimised


def test_the_file_on_the_page_is_taken_as_the_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/measure.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"^```json (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    (session,) = re.findall(r"^```console file\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert list(files) == ["payments.jsonl"]
    run_session(parse_session(session), tmp_path, files)
