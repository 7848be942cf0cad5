"""Crashes of engines are findings: each is named with its input, and other nodes are verified."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from tests.support import faulty_engine
from tests.support.faulty_engine import FaultyEngine
from vesper.cli.verify import command as verify_command
from vesper.cli.verify.command import command
from vesper.engines.registry import ENGINES
from vesper.verify.differential.forms import COMPARED
from vesper.verify.differential.ways.way import Answer, Given, Subject, Way
from vesper.verify.workers import reduction
from vesper.verify.workers.process import WorkerLimits, WorkerProcess

NODE = """node_id: {}
type: function
intent: What is left
inputs:
  amount: {{type: decimal, constraints: [positive]}}
  limit: {{type: decimal, default: 5.00}}
outputs:
  success: {{rest: decimal}}
  error: {{error_code: "enum[too_much]", message: string}}
flow:
  - {{operation: raise, when: amount > limit, error: {{error_code: too_much, message: "'no'"}}}}
  - {{operation: return, success: {{rest: limit - amount}}}}
testing:
  test_cases:
    - {{name: some is left, inputs: {{amount: 2}}, expect: {{rest: 3.00}}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes").mkdir()
    monkeypatch.setattr(reduction, "REDUCTION_SECONDS", 0.5)
    for name in ("bad_v1", "good_v1"):
        (tmp_path / "nodes" / f"{name}.vsp").write_text(NODE.format(name), encoding="utf-8")
    return tmp_path


def is_large(inputs: Mapping[str, object]) -> bool:
    amount = inputs.get("amount")
    return isinstance(amount, Decimal) and amount.is_finite() and amount > 100


def plant(
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[], None] | None,
    strikes: Callable[[Mapping[str, object]], bool] = is_large,
    node_id: str = "bad_v1",
    when_loading: bool = False,
) -> None:
    engine = FaultyEngine(ENGINES["interp"], node_id, fault, strikes, when_loading)
    monkeypatch.setitem(COMPARED, "interp", engine)


def run(*arguments: str) -> Result:
    limits = ("--input-seconds", "1", "--input-memory", "256", "--max-examples", "20")
    return CliRunner().invoke(command, [*limits, "--engine", "interp", *arguments])


def run_json(*arguments: str) -> tuple[int, dict[str, Any]]:
    result = run(*arguments, "--format", "json")
    return result.exit_code, json.loads(result.stdout)


def has_no_children() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return True


@pytest.mark.parametrize(
    "fault, kind, ending",
    [
        (faulty_engine.loop_forever, "hang", "does not end within"),
        (faulty_engine.hang_in_native_code, "hang", "does not end within"),
        (faulty_engine.abort, "signal", "SIGABRT"),
        (faulty_engine.violate_memory, "signal", "SIGSEGV"),
        (faulty_engine.allocate_20_gib, "memory", "256 MiB"),
        (faulty_engine.allocate_at_once, "memory", "256 MiB"),
        (faulty_engine.exit_early, "exit", "exit code 5"),
        (faulty_engine.raise_error, "raised", "RuntimeError: planted"),
        (faulty_engine.panic, "raised", "Panic: planted"),
    ],
)
def test_a_crash_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[], None], kind: str, ending: str
) -> None:
    plant(monkeypatch, fault)
    begun = time.monotonic()
    exit_code, found = run_json("nodes")
    assert exit_code == 3
    bad, good = found["nodes"]
    crash = bad["crashes"][0]
    assert (crash["engine"], crash["kind"], crash["stage"]) == ("interp", kind, "run")
    assert ending in crash["ending"]
    assert Decimal(crash["inputs"]["amount"]) > 100
    assert crash["number"] > 0
    assert not bad["passed"]
    assert bad["given_up"] == (len(bad["crashes"]) == 3)
    assert found["crashes"] == len(bad["crashes"])
    assert good["passed"]
    assert good["executions"] == 20
    assert time.monotonic() - begun < 30
    assert has_no_children()


def test_an_engine_fault_is_a_disagreement(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, None)
    exit_code, found = run_json("nodes")
    bad, good = found["nodes"]
    assert exit_code == 3
    assert bad["disagreements"]
    assert not bad["crashes"]
    assert good["passed"]


def test_the_run_goes_on_behind_the_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, faulty_engine.abort, lambda inputs: inputs.get("amount") == 2)
    exit_code, found = run_json("nodes/bad_v1.vsp", "--max-examples", "10")
    (bad,) = found["nodes"]
    assert exit_code == 3
    assert [(each["stage"], each["number"]) for each in bad["crashes"]] == [("case", 1)], "input 1 is the same"
    assert not bad["given_up"]
    assert bad["executions"] == 9


def test_inputs_are_reduced_and_saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "REDUCTION_SECONDS", 20.0)
    plant(monkeypatch, faulty_engine.abort)
    result = run("nodes/bad_v1.vsp")
    assert "`interp` ends its process with SIGABRT on `bad_v1`" in result.stderr
    assert "amount=101  (smallest that was found" in result.stderr
    assert "FAILED: given up after 3 crashes" in result.stdout
    kept = next((folder / "tests" / "conformance" / "regressions").iterdir()).read_text(encoding="utf-8")
    assert 'amount: {"decimal":"101"}' in kept


def test_a_node_that_cannot_be_loaded_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, faulty_engine.abort, when_loading=True)
    exit_code, found = run_json("nodes")
    bad, good = found["nodes"]
    assert exit_code == 3
    assert [each["stage"] for each in bad["crashes"]] == ["load"]
    assert bad["given_up"]
    assert good["passed"]


def test_formats_hold_crashes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, faulty_engine.abort)
    junit = ET.fromstring(run("nodes", "--format", "junit").stdout)
    assert [each.get("type") for each in junit.iter("failure")] == ["engine-crashes"]
    (log,) = json.loads(run("nodes", "--format", "sarif").stdout)["runs"]
    assert {each["ruleId"] for each in log["results"]} == {"engine-crashes"}
    assert "SIGABRT" in log["results"][0]["message"]["text"]


def test_a_random_program_that_crashes_is_a_failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = "program_2_v1"
    plant(monkeypatch, faulty_engine.abort, lambda _: True, chosen)
    exit_code, found = run_json("--programs", "4")
    assert exit_code == 3
    drawn = found["random_programs"]
    assert drawn["programs"] == 4
    assert drawn["executions"] == 60, "the other programs were verified"
    ((kind, program, detail),) = [(each["kind"], each["program"], each["detail"]) for each in drawn["failures"]]
    assert kind == "crashed"
    assert f"node_id: {chosen}" in program
    assert "`interp` ends its process with SIGABRT on input" in detail
    assert found["crashes"] == 1


def test_a_function_that_crashes_is_no_bug_of_vesper(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    text = "import os\n\ndef rest(amount, limit):\n    os.abort()\n"
    (folder / f"{folder.name}.py").write_text(text, encoding="utf-8")
    exit_code, found = run_json("bad", "--against", f"{folder.name}:rest")
    assert exit_code == 1
    assert found["nodes"][0]["crashes"][0]["engine"] == f"{folder.name}:rest"


class AbortingWay(Way):
    """A way that ends its process."""

    name = "aborting"

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        for _ in given:
            os.abort()
        yield from ()


def aborting_ways(subject: Subject) -> Sequence[Way]:
    del subject
    return [AbortingWay()]


def test_a_way_that_crashes_is_named_and_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_command, "WAYS", (aborting_ways,))
    exit_code, found = run_json("bad", "--engine", "interp-optimised")
    (bad,) = found["nodes"]
    assert exit_code == 3
    assert [(each["engine"], each["stage"], each["kind"]) for each in bad["crashes"]] == [("aborting", "way", "signal")]
    assert bad["executions"] == 20
    assert not bad["given_up"]


def test_a_worker_that_has_not_begun_does_not_hang() -> None:
    process = WorkerProcess(lambda _link, _watch: time.sleep(60), WorkerLimits(), [])
    try:
        assert [process.overrun() for _ in range(3)] == [None, None, None]
    finally:
        process.stop()
