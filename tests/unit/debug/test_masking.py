"""A masked session shows no sensitive value at any stop, in called nodes and loops too; expressions reveal none."""

from __future__ import annotations

from pathlib import Path

import pytest

from vesper.compiler import compile_file
from vesper.debug.commands import Commands
from vesper.debug.masking import SessionMasks
from vesper.debug.session import Session
from vesper.debug.start import subject_of_case
from vesper.engines.registry import PAIR
from vesper.host.masking import Masks

CALLEE = """\
node_id: score_v1
type: function
intent: Score incomes
inputs: {income: decimal, factor: decimal}
outputs: {success: {score: decimal}}
flow:
  - {step: weighted, operation: compute, value: income * factor}
  - {operation: return, success: {score: weighted}}
contracts:
  preconditions:
    - income > factor
"""
CALLER = """\
node_id: limit_v1
type: function
intent: Derive a limit from an income, which stays secret
inputs: {incomes: "array<decimal>", factor: decimal}
outputs: {success: {limit: decimal, doubled: decimal}}
flow:
  - step: summed
    operation: loop
    over: income IN incomes
    state: {total: {type: decimal, value: "0"}}
    steps:
      - {step: scored, operation: call_node, node: score_v1, inputs: {income: income, factor: factor}}
    next: {total: total + scored.score}
  - {step: doubled, operation: compute, value: factor * 2}
  - {operation: return, success: {limit: summed.total, doubled: doubled}}
contracts:
  invariants:
    - factor > 0
security:
  sensitive_data: [incomes]
"""
SECRETS = ("777", "1554", "888", "1776", "3330")


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    folder: Path = tmp_path_factory.mktemp("nodes")
    (folder / "score_v1.vsp").write_text(CALLEE, encoding="utf-8")
    (folder / "limit_v1.vsp").write_text(CALLER, encoding="utf-8")
    compiled, bag = compile_file(folder / "limit_v1.vsp")
    assert compiled is not None, [each.headline for each in bag.sorted()]
    subject = subject_of_case(compiled, tuple(PAIR.values()), None, {"incomes": [777, 888], "factor": 2}, None)
    return Commands(subject.session(), masks=SessionMasks(Masks(compiled)))


def test_no_stop_shows_a_sensitive_value_and_others_stay(commands: Commands) -> None:
    told: list[str] = []
    for _ in range(40):
        told += commands.run("step")
        told += commands.run("into")
        told += commands.run("diff")
        if commands.session.is_at_end:
            if len(commands.sessions) == 1:
                break
            told += commands.run("out")
    text = "\n".join(told)
    assert "into score_v1" in text
    assert "score: " in text
    assert "doubled: 4" in text
    assert [each for each in SECRETS if each in text] == []


@pytest.mark.parametrize(
    "command",
    ["print incomes", "print summed.total > 1000", "watch summed.total", "watch length(incomes)",
     "break doubled > 3 AND summed.total > 1", "break step:doubled if summed.total > 3000",
     "break step:scored if income > 800", "break step:weighted if income > 800"],
)  # fmt: skip
def test_an_expression_over_sensitive_values_is_refused(commands: Commands, command: str) -> None:
    commands.run("end")
    before = list(commands.session.breakpoints)
    (told, *_) = commands.run(command)
    assert "reveal" in told, told
    assert commands.session.breakpoints == before


def test_other_expressions_are_evaluated(commands: Commands) -> None:
    commands.run("end")
    assert commands.run("print factor * 3") == ["6"]
    assert commands.run("break step:doubled if factor > 1") == ["breakpoint 1: step:doubled if factor > 1"]
    assert "stopped by `step:doubled if factor > 1`" in commands.run("reverse-continue")
    commands.run("delete 1")


def test_the_end_and_the_divergence_are_found_from_anywhere(commands: Commands) -> None:
    session: Session = commands.session
    commands.run("break step:doubled")
    session.goto(type(session.position)(0))
    assert "the execution has ended" in commands.run("end")
    assert commands.run("divergence")[0] == "the engines do not diverge"
    assert len(session.breakpoints) == 1
