from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import compiled_text, small_node
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.reports import Disagreement, Fault, Lost, PartAgreed, Report
from vesper.migration.control.controller import step
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import Enumerated, NodeState, Tick
from vesper.migration.workers.enumeration import Domain, NotEnumerable, Position, domain_of, enumerate_all, run_part
from vesper.migration.workers.rerun import Pair
from vesper.values.model import MAX_INTEGER, MIN_INTEGER

KEY = bytes(range(16))
RETURN_ONE = "- operation: return\n  success: {result: 1}"


def node_of(inputs: str, rest: str = "", flow: str = RETURN_ONE) -> Compiled:
    return small_node(inputs, flow, "result: integer", rest)


def requires(*conditions: str) -> str:
    return f"contracts:\n  preconditions: {list(conditions)}"


TWO_ENUMS = node_of(
    "plan: enum[free, basic, pro]\nregion: enum[eu, us]\nis_new: boolean",
    flow="- operation: return\n"
    '  success: {result: \'IF is_new THEN 0 ELSE IF plan == "free" THEN 1 ELSE IF region == "eu" THEN 2 ELSE 3\'}',
)


@pytest.mark.parametrize(
    "inputs, rest, size",
    [
        ("is_new: boolean", "", 2),
        ("plan: enum[free, basic, pro]\nregion: enum[eu, us]\nis_new: boolean", "", 12),
        ("plan: optional<enum[free, pro]>", "", 3),
        # Ten within, and on each side the nearest and the farthest beyond.
        ("n: {type: integer, constraints: [{min: 1}, {max: 10}]}", "", 14),
        ("n: {type: integer, constraints: [positive, {max: 10}]}\nb: boolean", "", 28),
        ("n: integer", requires("n > 0 AND 10 >= n"), 14),
        ("n: integer", requires("n >= -3", "n < 3"), 10),
        ("n: {type: integer, constraints: [{min: 1}, {max: 10}]}", requires("n < 5", "3 < n"), 5),
        ("n: integer", requires("n == 5"), 5),
        ("p: Two\nb: boolean", "types:\n  Two: {fields: {a: boolean, b: 'enum[x, y, z]'}}", 12),
        ("p: Two", "types:\n  Two: {fields: {a: boolean, n: integer}}\n" + requires("p.n >= 0", "p.n <= 1"), 12),
    ],
)
def test_the_size_of_a_domain_is_exact(inputs: str, rest: str, size: int) -> None:
    domain = domain_of(node_of(inputs, rest))
    assert domain.size == size
    all_of_it = [domain.at(number) for number in range(domain.size)]
    assert len({repr(each) for each in all_of_it}) == size


def test_values_beyond_the_bounds_are_part_of_the_domain() -> None:
    domain = domain_of(node_of("n: {type: integer, constraints: [{min: 1}, {max: 2}]}"))
    assert [domain.at(number)["n"] for number in range(domain.size)] == [MIN_INTEGER, 0, 3, MAX_INTEGER, 1, 2]


@pytest.mark.parametrize(
    "inputs, rest, why",
    [
        ("s: string", "", "`s` is a string"),
        ("d: {type: decimal, constraints: [positive, {max: 1}]}", "", "`d` is a decimal"),
        ("xs: array<boolean>", "", "array<boolean>"),
        ("n: integer", "", "no contract sets a lower bound"),
        ("n: {type: integer, constraints: [{min: 1}]}", "", "no contract sets a upper bound"),
        # A bound that holds only sometimes is none.
        ("n: integer\nb: boolean", requires("b OR (n > 0 AND n < 5)"), "lower bound"),
        ("n: {type: integer, constraints: [{min: 1}, {max: 1000000}]}", "", "has 1,000,004 inputs"),
        ("\n".join(f"b{number}: boolean" for number in range(20)), "", "has 1,048,576 inputs"),
    ],
)
def test_not_enumerable_nodes_have_a_reason(inputs: str, rest: str, why: str) -> None:
    with pytest.raises(NotEnumerable, match=why):
        domain_of(node_of(inputs, rest))


def test_a_million_is_not_too_many() -> None:
    domain = domain_of(node_of("n: {type: integer, constraints: [{min: 1}, {max: 999996}]}"))
    assert domain.size == 10**6
    assert domain.at(10**6 - 1) == {"n": 999_996}


def test_nodes_with_time_or_effects_are_not_enumerable() -> None:
    text = """\
node_id: clock_v1
type: scheduled_job
intent: Test
inputs: {b: {type: boolean, default: true}}
outputs:
  success: {result: timestamp}
flow:
  - operation: return
    success: {result: 'now()'}
"""
    with pytest.raises(NotEnumerable, match="when its execution began"):
        domain_of(compiled_text(text))
    without = text.replace("timestamp", "boolean").replace("now()", "b")
    assert domain_of(compiled_text(without)).size == 2


class Lies:
    """A direct engine that is wrong on one input."""

    def __init__(self, node: Compiled, inputs: dict[str, object], instead: dict[str, object] | None) -> None:
        self._program = DirectEngine().load(node)
        self._inputs, self._instead = inputs, instead

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def call_pathed(self, inputs: Any, *rest: Any) -> Any:
        if inputs == self._inputs:
            if self._instead is None:
                raise RuntimeError("it broke")
            inputs = self._instead
        return self._program.call_pathed(inputs, *rest)


def enumerated(node: Compiled, position: Position, direct: Any = None, part: int | None = None) -> Any:
    domain, pair = domain_of(node), Pair(node, Comparator(node), direct)
    return enumerate_all(
        domain, "epoch", lambda start, count: run_part(pair, domain, start, part or count, KEY), position
    )


def test_two_enums_and_a_boolean_reach_direct_only(tmp_path: Path) -> None:
    found = enumerated(TWO_ENUMS, Position(tmp_path / "position"))
    assert found == Enumerated(12)
    state = NodeState("small_v1", "epoch")
    modes = [state.mode]
    state, _ = step(state, found, 1)
    for at in range(2, 5):
        modes.append(state.mode)
        state, _ = step(state, Tick(), at)
    assert modes == [Mode.SHADOW_DIRECT, Mode.CANARY_DIRECT, Mode.DUAL_VERIFY, Mode.DIRECT_ONLY]


@pytest.mark.parametrize("number", [0, 5, 11])
def test_one_wrong_input_is_found_whichever_it_is(tmp_path: Path, number: int) -> None:
    wrong = domain_of(TWO_ENUMS).at(number)
    other = {**wrong, "is_new": not wrong["is_new"]}
    found = enumerated(TWO_ENUMS, Position(tmp_path / "position"), Lies(TWO_ENUMS, wrong, other))
    assert isinstance(found, Disagreement)
    assert found.transcript.inputs == wrong
    assert found.note is not None
    assert found.fingerprint is not None
    broken = enumerated(TWO_ENUMS, Position(tmp_path / "position"), Lies(TWO_ENUMS, wrong, None))
    assert isinstance(broken, Fault)
    assert broken.transcript is not None
    assert broken.transcript.inputs == wrong


def test_another_path_to_the_same_outcome_is_found(tmp_path: Path) -> None:
    node = node_of(
        "a: boolean\nb: boolean", flow="- operation: return\n  success: {result: 'IF a THEN 1 ELSE IF b THEN 1 ELSE 0'}"
    )
    lies = Lies(node, {"a": False, "b": True}, {"a": True, "b": True})
    found = enumerated(node, Position(tmp_path / "position"), lies)
    assert isinstance(found, Disagreement)
    assert found.difference.kind == "path"


def test_malformed_inputs_must_be_refused_alike(tmp_path: Path) -> None:
    lies = Lies(TWO_ENUMS, {"plan": "free", "is_new": True}, domain_of(TWO_ENUMS).at(0))
    refused = list(domain_of(TWO_ENUMS).refused())
    lies._inputs = next(each for each in refused if "region" not in each)
    found = enumerated(TWO_ENUMS, Position(tmp_path / "position"), lies)
    assert isinstance(found, Disagreement)
    assert "region" not in found.transcript.inputs


@pytest.mark.parametrize("report", [None, PartAgreed.on(0), PartAgreed.on(1)], ids=repr)
def test_a_part_that_was_not_run_in_full_is_no_agreement(tmp_path: Path, report: Report | None) -> None:
    position = Position(tmp_path / "position")
    assert isinstance(enumerate_all(domain_of(TWO_ENUMS), "e", lambda *_: report, position), Lost)
    assert position.read("e", 12) == 0


def test_an_enumeration_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.migration.workers.enumeration.PART_SIZE", 5)
    domain, position = domain_of(TWO_ENUMS), Position(tmp_path / "folder" / "position")
    asked: list[tuple[int, int]] = []
    seen: list[tuple[int, int]] = []

    pair = Pair(TWO_ENUMS, Comparator(TWO_ENUMS))

    def run(start: int, count: int) -> Report:
        asked.append((start, count))
        return Lost("the helper died") if len(asked) == 2 else run_part(pair, domain, start, count, KEY)

    assert isinstance(enumerate_all(domain, "e", run, position), Lost)
    assert enumerate_all(domain, "e", run, position, is_stopped=lambda: len(asked) == 3) is None
    assert enumerate_all(domain, "e", run, position, lambda *at: seen.append(at)) == Enumerated(12)
    assert asked == [(0, 5), (5, 5), (5, 5), (10, 5)]
    assert seen == [(10, 12), (12, 12)]
    # All of it was run: whoever has to show it again runs all of it again.
    assert position.read("e", 12) == 0
    # Another epoch, or a file that is none, begins again.
    position.write("e", 12, 12)
    assert position.read("e", 12) == 12
    assert position.read("other", 12) == 0
    assert position.read("e", 13) == 0
    file = tmp_path / "folder" / "position"
    file.write_text(file.read_text(encoding="utf-8").replace('"done": 12', '"done": 11'), encoding="utf-8")
    assert position.read("e", 12) == 0
    file.write_bytes(b"{")
    assert position.read("e", 12) == 0


def test_contracts_that_contradict_each_other_leave_what_is_refused() -> None:
    # A contradiction leaves no input that is taken; those that are refused are run all the same.
    domain = domain_of(node_of("n: {type: integer, constraints: [{min: 5}, {max: 3}]}"))
    assert isinstance(domain, Domain)
    assert domain.size >= 3
