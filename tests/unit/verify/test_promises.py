"""A broken postcondition is reported with its smallest input; other files are still verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from vesper.cli.verify.command import command

NODE = """node_id: rest_v1
type: function
intent: What is left
inputs:
  amount: decimal
  limit: {type: decimal, default: 5}
outputs:
  success: {rest: decimal}
contracts:
  preconditions: [amount > 0%s]
  postconditions: [rest >= 0]
flow:
  - operation: return
    success: {rest: limit - amount}
%s"""
CASE = """testing:
  test_cases:
    - {name: too much, inputs: {amount: 6}, expect: {breaks: rest >= 0}}
"""


def _verified(tmp_path: Path, *more: str) -> tuple[int, dict[str, Any]]:
    arguments = [tmp_path.as_posix(), "--max-examples", "60", "--format", "json", *more]
    result = CliRunner().invoke(command, arguments)
    return result.exit_code, json.loads(result.stdout)


def _write(tmp_path: Path, precondition: str = "", rest: str = "") -> None:
    (tmp_path / "rest_v1.vsp").write_text(NODE % (precondition, rest), encoding="utf-8")


def test_a_broken_postcondition_fails_with_the_smallest_input(tmp_path: Path) -> None:
    _write(tmp_path)
    exit_code, report = _verified(tmp_path)
    assert exit_code == 1
    (node,) = report["nodes"]
    (broken,) = node["broken_postconditions"]
    smallest = ({"amount": "6"}, {"amount": "1", "limit": "0"})
    assert broken.pop("inputs") in smallest, "both are smallest: no single change makes them smaller"
    assert broken == {"clause": "rest >= 0", "line": 11, "values": {"rest": "-1"}}


def test_a_precondition_keeps_the_promise(tmp_path: Path) -> None:
    _write(tmp_path, precondition=", amount <= limit")
    assert _verified(tmp_path)[0] == 0


def test_a_postcondition_that_a_case_breaks_is_not_reported(tmp_path: Path) -> None:
    _write(tmp_path, rest=CASE)
    assert _verified(tmp_path)[0] == 0


def test_a_node_with_errors_does_not_stop_the_others(tmp_path: Path) -> None:
    _write(tmp_path, precondition=", amount <= limit")
    (tmp_path / "bad_v1.vsp").write_text("node_id: bad_v1\n", encoding="utf-8")
    exit_code, report = _verified(tmp_path)
    assert exit_code == 1
    assert report["refused"] == [(tmp_path / "bad_v1.vsp").as_posix()]
    assert len(report["nodes"]) == 1
