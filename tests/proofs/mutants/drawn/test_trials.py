"""Recorded chunks replay without a difference, a wrong answer is noticed, and every end of a process is told."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import pytest

from tests.proofs.mutants.drawn import report
from tests.proofs.mutants.drawn.draw import Mutant
from tests.proofs.mutants.drawn.recording import Answers, Chunk, RecordingVerifier, programs_of
from tests.proofs.mutants.drawn.trials import difference, run_trials, start_trial
from tests.support.nodes import compiled, worked_nodes
from vesper.engines.engine import Done
from vesper.engines.outcome import Failed
from vesper.verify.differential.forms import COMPARED
from vesper.verify.rounds import Unit
from vesper.verify.workers.tasks import Workload


@pytest.fixture(scope="module")
def program() -> Chunk:
    (chunk,) = programs_of(Unit(None, 0, (3,)), Workload((), COMPARED, 7))
    return chunk


def test_a_program_replays_without_a_difference(program: Chunk) -> None:
    assert len(program.inputs) == 20
    assert difference(program) == (None, program.lost)


def test_every_round_of_a_node_with_effects_replays() -> None:
    path = next(path for path in worked_nodes() if path.stem.startswith("refund"))
    verifier = RecordingVerifier(compiled(path), 7, True)
    rounds = [verifier.record(f"round {number}", 8, 7 + number) for number in range(3)]
    assert [each.runs_cases for each in rounds] == [True, False, False]
    kept = [each for chunk in rounds for answers in chunk.answers.values() for each in answers]
    assert any(isinstance(each, list) and len(each) > 1 for each in kept)
    assert [difference(each) for each in rounds] == [(None, 0)] * 3


def test_another_answer_is_noticed(program: Chunk) -> None:
    wrong: Answers = {key: [[Done(Failed("planted", 0), ())]] for key in program.answers}
    chunk = Chunk("", program.compiled, program.seed, False, program.inputs, wrong, False)
    assert difference(chunk)[0] == "differs"


# -- processes ------------------------------------------------------------------------------------


def _notice(at: Any, answer_to: Connection) -> None:
    at.value = 3
    answer_to.send((3, "differs"))


def _survive(_: Any, answer_to: Connection) -> None:
    answer_to.send(None)


def _abort(at: Any, _: Connection) -> None:
    at.value = 2
    os.kill(os.getpid(), signal.SIGKILL)


def _hang(at: Any, _: Connection) -> None:
    at.value = 1
    time.sleep(60)


def test_every_end_of_a_process_is_told() -> None:
    targets: dict[str, Callable[..., None]] = {"one": _notice, "two": _survive, "three": _abort, "four": _hang}
    found: dict[str, tuple[int, str] | None] = {}
    begun = time.monotonic()
    run_trials(list(targets), lambda name: start_trial(name, targets[name], (), 2.0), 2, found.__setitem__)
    assert found == {"one": (3, "differs"), "two": None, "three": (2, "ends with -9"), "four": (1, "does not end")}
    assert time.monotonic() - begun < 30


# -- figures --------------------------------------------------------------------------------------


def mutant(name: str, crate: str = "vesper-ir") -> Mutant:
    return Mutant(name, "guard", f"{crate}/src/lib.rs", "f", (0, 9), ((1, 2, "x"),), 1, "a", "x")


RESULTS: dict[str, dict[str, Any]] = {
    "soon": {"verify": {"seconds": 59.9}},
    "late": {"verify": {"seconds": 60.1}},
    "corpus": {"corpus": {"what": "case 1"}},
    "tests": {"tests": {"what": "tests of vesper-ir"}},
    "none": {"verified_seconds": 600.0, "is_reached": True},
}
MUTANTS = [mutant(name) for name in RESULTS]


def test_shares_leave_out_equivalent_mutants() -> None:
    found = report.figures(MUTANTS, RESULTS, {})
    assert (found["killed_60s"], found["killed_600s"], found["killed_all"]) == (0.2, 0.4, 0.8)
    assert report.figures(MUTANTS, RESULTS, {"none": "reason"})["killed_all"] == 1.0
    assert found["by_crate"]["vesper-ir"]["mutants"] == 5


def test_a_missed_bar_is_a_problem() -> None:
    wrong = report.problems(MUTANTS, RESULTS, {})
    assert any(line.startswith("killed_60s is 20.0%") for line in wrong)
    assert any(line.startswith("of vesper-ir 80.0%") for line in wrong)
    assert not report.problems([mutant("soon")], RESULTS, {})


def test_a_noticed_mutant_is_not_equivalent() -> None:
    wrong = report.problems([mutant("soon"), mutant("late")], RESULTS, {"late": "reason"})
    assert any(line.startswith("late is listed") for line in wrong)
    assert any("are judged equivalent" in line for line in wrong)


def test_survivors_are_shown_with_their_lines() -> None:
    text = report.survivors_text(MUTANTS, RESULTS, {"tests": "it changes nothing"})
    assert "`none` vesper-ir/src/lib.rs:1 `f` (guard); SURVIVES, verified for 600 s" in text
    assert "noticed by corpus: case 1" in text
    assert "equivalent: it changes nothing" in text
    assert "`soon`" not in text


def test_reasons_name_a_mutant_and_say_something() -> None:
    for name, reason in report.equivalent_mutants().items():
        assert len(name) == 10
        assert len(reason.split()) > 3
