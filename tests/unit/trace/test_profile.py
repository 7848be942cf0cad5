"""`vesper profile`: every step and operation has a time on every engine, by a fake clock."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.journalled import invoke
from tests.support.nodes import ROOT, compiled_text
from vesper.debug.case_trace import trace_inputs
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.trace import profile
from vesper.verify.inputs.responses import NOON

NODE = """\
node_id: uneven_v1
type: function
intent: Spend the time in one step
inputs:
  count: integer
outputs:
  success: {cheap: integer, dear: integer}
flow:
  - {step: cheap, operation: compute, value: count + 1}
  - {step: dear, operation: compute, value: "SUM(i * i FOR i IN range(0, count))"}
  - {operation: return, success: [cheap, dear]}
"""


class Clock:
    """A clock that advances only when a call sets it."""

    def __init__(self) -> None:
        self.now = 0.0

    def takes(self, seconds: float) -> Callable[[], None]:
        def call() -> None:
            self.now += seconds

        return call


def test_the_best_of_all_rounds_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(profile, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    slow_at_first = iter([0.5] * 10)

    def warming_up() -> None:
        clock.now += next(slow_at_first, 0.001)

    found = profile._time_calls([clock.takes(0.002), clock.takes(0.000001), warming_up])
    assert [round(each) for each in found] == [2_000_000, 1_000, 1_000_000]


def test_a_profile_keeps_to_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    now = SimpleNamespace(perf_counter=lambda: clock.now, thread_time=lambda: clock.now)
    monkeypatch.setattr(profile, "time", now)
    assert profile._time_calls([clock.takes(0.5)], until=2.25) == [0.5e9]
    assert clock.now == 2.5  # four calls to warm up and one round
    with pytest.raises(profile.TooSlow, match="takes too long"):
        profile._time_calls([clock.takes(0.5)] * 3, until=clock.now + 2)


def test_steps_are_grouped_where_compiling_each_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiled_text(NODE)
    trace = trace_inputs(compiled, {"count": 15}, NOON)
    engines = {"interp": ENGINES["interp"]}
    monkeypatch.setattr(profile, "_time_calls", lambda calls, _until: [float(each) for each in range(len(calls))])
    for seconds, names in (
        (0.01, ["cheap", "dear", "return"]), (0.25, ["cheap … dear", "return"]), (0.3, ["cheap … return"]),
    ):  # fmt: skip
        clock = iter([0.0, 0.0, *[seconds] * 1000])  # the time of one cut
        monkeypatch.setattr(time, "thread_time", partial(next, clock))
        found = profile.profile_steps(trace, engines, 2.0)
        assert [each.name for each in found.steps][1:-1] == names
    monkeypatch.setattr(time, "thread_time", partial(next, iter([0.0, 0.0, *[0.8] * 1000])))
    assert [each.name for each in profile.profile_steps(trace, engines, 2.0).steps] == ["(the whole node)"]


def test_a_step_costs_the_difference_of_two_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node is timed before its first step, after each step and whole; negative noise is zero."""
    ended: list[list[object]] = []

    def timed(calls: Sequence[Callable[[], object]], _until: float = 0) -> list[float]:
        outcomes = [call() for call in calls]
        assert all(isinstance(each, Returned) for each in outcomes)
        ended.append([dict(each.value) for each in outcomes if isinstance(each, Returned)])
        if len(calls) == 5:
            return [10.0, 15.0, 1015.0, 1014.0, 1025.0]
        return [100.0, *(100.0 + 1000.0 * profile._REPEATS * number for number in range(1, len(calls)))]

    monkeypatch.setattr(profile, "_time_calls", timed)
    monkeypatch.chdir(tmp_path)
    Path("uneven_v1.vsp").write_text(NODE, encoding="utf-8")
    done = invoke("profile", "./uneven_v1.vsp", "-i", "count=15", "--format", "json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    costs = {
        "(inputs, constraints, preconditions)": 10, "cheap": 5, "dear": 1000, "return": 0,
        "(outputs, postconditions, invariants)": 10,
    }  # fmt: skip
    assert {each["step"]: each["ns"] for each in said["steps"]} == {
        name: dict.fromkeys(ENGINES, cost) for name, cost in costs.items()
    }
    assert said["total_ns"] == dict.fromkeys(ENGINES, 1025)
    # Cut off, it returns nothing; whole, its outputs. An operation is repeated in a counting loop.
    assert ended[: len(ENGINES)] == [[{"done": True}] * 4 + [{"cheap": 16, "dear": 1015}]] * len(ENGINES)
    assert ended[len(ENGINES) :] == [[{"done": profile._REPEATS}] * 3] * len(ENGINES)
    times = {each["operation"]: each["ns"]["interp"] for each in said["operations"]}
    assert times == {"array.range": 2000, "integer.add": 1000}, "the dearest first, without the empty loop"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round, for tests that do not read times."""
    monkeypatch.setattr("vesper.trace.profile._ROUNDS", 1)
    monkeypatch.setattr("vesper.trace.profile._REPEATS", 5)


@pytest.mark.usefixtures("at_once")
def test_a_node_with_effects_is_timed_on_the_answers_of_a_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    node = str(ROOT / "nodes" / "shop" / "stock_release_v1.vsp")
    done = invoke("profile", node)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[2].split() == ["step", *ENGINES]
    assert "total" in done.stdout
    assert list(tmp_path.iterdir()) == []
    for arguments, message in (
        (["--case", "nobody"], "has no case `nobody`"),
        (["--case", "x", "-i", "a=1"], "give only one of --input or --json, --case, and --trace"),
        (["--trace", "ffff"], "no trace `ffff`"),
    ):
        refused = invoke("profile", node, *arguments)
        assert refused.exit_code != 0
        assert message in refused.stderr


STAMP = """\
node_id: stamp_v1
type: data_transform
intent: Say when, three times
inputs:
  names: array<string>
outputs:
  success: {first: timestamp}
security:
  capabilities_required: [clock.read.system]
flow:
  - {step: first, operation: clock}
  - step: each
    operation: loop
    over: name IN names
    collect: at
    max: 10
    steps:
      - {step: at, operation: clock}
  - {operation: return, success: [first]}
"""


@pytest.mark.usefixtures("at_once")
def test_effects_with_default_answers_need_no_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks and ids have the default answers of the debugger; other requests are named as missing."""
    monkeypatch.chdir(tmp_path)
    Path("stamp_v1.vsp").write_text(STAMP, encoding="utf-8")
    Path("names.json").write_text('{"names": ["ann", "bob"]}', encoding="utf-8")
    done = invoke("profile", "./stamp_v1.vsp", "--json", "names.json")
    assert done.exit_code == 0, done.output
    issue = str(ROOT / "nodes" / "access" / "api_key_issue_v1.vsp")
    Path("ann.json").write_text('{"owner": "ann", "scopes": ["read"]}', encoding="utf-8")
    refused = invoke("profile", issue, "--json", "ann.json")
    assert (refused.exit_code, refused.stderr.startswith("error: `existing` has no answer")) == (1, True)


@pytest.mark.usefixtures("at_once")
def test_the_requested_execution_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nodes").mkdir()
    Path("nodes/stamp_v1.vsp").write_text(STAMP, encoding="utf-8")
    decision = (ROOT / "nodes" / "payments" / "payment_decision_v1.vsp").read_text("utf-8")
    Path("nodes/payment_decision_v1.vsp").write_text(decision, encoding="utf-8")
    given = ["amount=50", "balance=100", "currency=USD", "country=DE", "user_age_days=400"]
    pairs = [part for each in given for part in ("-i", each)]
    ran = invoke("run", "payment_decision", *pairs, "--trace")
    trace = ran.stdout.split()[-1]

    of_another = invoke("profile", "stamp", "--trace", trace)
    assert (of_another.exit_code, of_another.stdout) == (1, "")
    assert f"trace {trace} is of payment_decision_v1, not of stamp_v1" in of_another.stderr
    with_a_start = invoke("profile", "payment_decision", "--trace", trace, "--now", "2026-01-01T00:00:00Z")
    assert (with_a_start.exit_code, "omit --now" in with_a_start.stderr) == (2, True)
    as_it_was = invoke("profile", "payment_decision", "--trace", trace)
    assert (as_it_was.exit_code, as_it_was.stderr) == (0, "")
    Path("nodes/payment_decision_v1.vsp").unlink()
    gone = invoke("profile", "payment_decision", "--trace", trace)
    assert gone.exit_code == 0, gone.output
    assert (
        gone.stderr
        == "note: payment_decision_v1 is timed as recorded in the trace: its file has changed or is missing\n"
    )


@pytest.mark.usefixtures("at_once")
def test_rejected_inputs_and_other_outcomes_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    node = str(ROOT / "nodes" / "payments" / "payment_decision_v1.vsp")
    lacking = invoke("profile", node, "-i", "amount=50")
    assert (lacking.exit_code, lacking.stdout) == (1, "")
    assert "balance: missing" in lacking.stderr
    wrong = invoke("profile", node, "--now", "yesterday")
    assert (wrong.exit_code, "--now yesterday" in wrong.stderr) == (2, True)
    given = ["amount=-1", "balance=100", "currency=USD", "country=DE", "user_age_days=400"]
    broken = invoke("profile", node, *(part for each in given for part in ("-i", each)))
    assert broken.exit_code == 0, broken.output
    assert broken.stderr.endswith("are not timed: precondition 1 broken\n")
