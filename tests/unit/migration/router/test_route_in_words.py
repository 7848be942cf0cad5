"""The fast entry over machine code: shadow runs without a frame count as those with one.

Nodes that read their start time are covered too.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.unit.migration.support.routed import compiled, put_into, routes_in, state_of
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.path import Pathed
from vesper.engines.registry import ENGINES
from vesper.engines.tiering import ALWAYS
from vesper.migration.compare.paths import PathNote, ending_of
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.router.fast_entry import NodeFastEntry
from vesper.migration.router.router import RoutedProgram
from vesper.migration.workers.inflight_counters import Slot

KEY = b"k" * 16
EVERY_FORM = """\
node_id: every_form_v1
type: function
intent: Has one of each form that stands in words, and paths that read different ones

types:
  Line:
    fields: {qty: integer, price: decimal, note: string}

inputs:
  flag:   boolean
  count:  {type: integer, default: 3}
  amount: decimal
  ratio:  float
  kind:   "enum[small, large]"
  name:   string
  lines:  array<Line>

outputs:
  success:
    is_large: boolean
    pieces:   integer
    total:    decimal
    share:    float
    size:     enum[small, large]
    title:    string

flow:
  - operation: compute
    compute:
      pieces:   count + SUM(line.qty FOR line IN lines)
      total:    IF flag THEN amount ELSE SUM(line.qty * line.price FOR line IN lines)
      is_large: pieces > 10
      share:    IF pieces > 5 THEN ratio ELSE 0.5e0
      size:     IF pieces > 20 THEN kind ELSE small
      title:    IF count > 4 THEN name ELSE "none"
  - operation: return
    success: [is_large, pieces, total, share, size, title]
"""


class InWords:
    """A route over machine code, beside the interpreter."""

    def __init__(self, folder: Path) -> None:
        path = folder / "every_form_v1.vsp"
        path.write_text(EVERY_FORM, encoding="utf-8")
        made = compiled(path)
        self.right: Callable[[dict[str, Any]], dict[str, Any]] = ENGINES["python"].load(made).entry  # type: ignore[attr-defined]
        self.interpreted = DirectEngine().load(made)
        self.direct: DirectProgram = DirectEngine(ALWAYS).load(made)
        self.answer: Callable[[dict[str, Any]], Any] = self.right
        self.handed: list[tuple[Any, ...]] = []
        self.route = self.direct.route(
            self._answered,
            self._slow,
            lambda *each: self.handed.append(each),
            lambda: None,
            Slot.unshared().flights,
            is_bare=True,
            deadline=5.0,
            most_bytes=1 << 20,
            keeps=False,
        )
        self.route.set(Mode.SHADOW_DIRECT.level, [], KEY, 0.0)

    def _answered(self, inputs: dict[str, Any]) -> Any:
        return self.answer(inputs)

    def _slow(self, _plan: int, inputs: dict[str, Any], _now: datetime | None = None) -> dict[str, Any]:
        return self.right(inputs)

    def way(self, inputs: dict[str, Any]) -> Pathed:
        return self.interpreted.call_pathed(inputs, KEY)

    def expressed(self) -> int:
        found = self.direct.tier().pathed
        return 0 if found is None else found.expressed

    def seen(self) -> list[tuple[Any, ...]]:
        """Return the calls that were left to Python since the last time.

        They arrive at once, or through the thread where the machine was busy and a call took long.
        """
        assert self.route.wait(30)
        found = [*self.handed, *self.route.drain()[-1]]
        self.handed.clear()
        return found


@pytest.fixture
def words(tmp_path: Path) -> InWords:
    return InWords(tmp_path)


def drawn(draw: random.Random) -> dict[str, Any]:
    """Return inputs in every form that a caller may use for the same value."""
    lines = [
        {"qty": draw.randint(0, 9), "price": Decimal(draw.randint(0, 10**6)) / 100, "note": draw.choice("xyz")}
        for _ in range(draw.randint(0, 3))
    ]
    found = {
        "flag": draw.random() < 0.5,
        "count": draw.randint(-3, 9),
        "amount": draw.choice([Decimal("1.50"), Decimal("1.5"), 7, Decimal(-3), Decimal("0.00")]),
        "ratio": draw.choice([0.25, -0.0, 0.0, math.nan, math.inf]),
        "kind": draw.choice(["small", "large"]),
        "name": draw.choice(
            ["", "plain", "zwölf \U0001f600", "x" * 300, "abcdefghijklmnopqrst"[: draw.randint(1, 20)]]
        ),
        "lines": lines,
    }
    if draw.random() < 0.2:
        del found["count"]
    if draw.random() < 0.3:
        found = dict(sorted(found.items()))
    return found


def test_fingerprints_equal_those_with_a_frame(words: InWords) -> None:
    """The first 64 of a path wait for Python, and are left out."""
    draw = random.Random(7)
    expected: dict[bytes, set[int]] = {}
    for _ in range(400):
        inputs = drawn(draw)
        assert words.route.call(inputs) is not None
        way = words.way(inputs)
        expected.setdefault(way.path, set()).add(way.fingerprint)
    assert words.route.wait(30)
    agreed = words.route.drain()[0]
    assert not words.handed, "none is left to Python: the engine agrees with itself, in every form"
    assert words.expressed() > 100
    found = {(path, each) for path, fingerprints, _ in agreed for each in fingerprints}
    assert len(found) > 50
    assert found <= {(path, each) for path, of_path in expected.items() for each in of_path}


def test_many_rows_have_the_same_fingerprints(words: InWords) -> None:
    """They have their own texts."""
    lines = [{"qty": number % 5, "price": Decimal(number) / 100, "note": f"note {number}"} for number in range(5_000)]
    inputs = {**drawn(random.Random(3)), "flag": False, "count": 6, "name": "zwölf", "lines": lines}
    right, way = words.right(inputs), words.way(inputs)
    words.answer = lambda _: right
    agreed = []
    for _ in range(70):
        assert words.route.call(inputs) is right
        assert words.route.wait(30)
        agreed += words.route.drain()[0]  # the queue has room for a few
    assert words.expressed() >= 65
    assert not words.handed
    assert {(path, each) for path, of_path, _ in agreed for each in of_path} == {(way.path, way.fingerprint)}
    words.route.set(Mode.DIRECT_ONLY.level, [way.path], KEY, 0.0)
    words.answer = lambda _: pytest.fail("the direct engine answers")
    before = words.expressed()
    assert repr(words.route.call(inputs)) == repr(right)
    assert words.expressed() == before + 1


def test_an_input_that_the_path_does_not_read_changes_nothing(words: InWords) -> None:
    inputs = {**drawn(random.Random(1)), "flag": True, "count": 1, "lines": []}
    for _ in range(70):  # the first ones are looked at
        words.route.call(inputs)
    words.seen()
    other = {**inputs, "ratio": 0.75, "kind": "large", "name": "another"}
    words.route.call(inputs)
    words.route.call(other)
    assert words.way(inputs) == words.way(other)
    assert words.route.wait(30)
    fingerprints = {each for _, of_path, _ in words.route.drain()[0] for each in of_path}
    assert fingerprints == {words.way(inputs).fingerprint}


OTHERS: dict[str, list[object]] = {
    "is_large": [1, False],
    "pieces": [12.0, 13, True, 10**30],
    "total": [Decimal("1.500"), Decimal("1.51"), 1.5, Decimal("NaN")],
    "share": [0.25000000000000006, 0, math.nan, Decimal("0.25")],
    "size": ["large", "smal", None],
    "title": ["Name", b"name", "\ud800"],
}


def test_another_outcome_is_left_to_python(words: InWords) -> None:
    inputs: dict[str, Any] = {"flag": True, "count": 12, "ratio": 0.25, "kind": "large", "name": "name", "lines": []}
    inputs["amount"] = Decimal("1.50")
    right = words.right(inputs)
    words.route.call(inputs)
    words.seen()
    for output, others in OTHERS.items():
        for value in others:
            wrong = {**right, output: value}
            words.answer = lambda _, wrong=wrong: wrong  # type: ignore[misc]
            assert words.route.call(inputs) is wrong
            assert words.route.wait(30)
            agreed, *_, later = words.route.drain()
            assert agreed == []
            assert [each[3:] for each in (*words.handed, *later)] == [(False, None, None)], (output, value)
            words.handed.clear()


def test_a_negative_zero_is_another_outcome(words: InWords) -> None:
    inputs = {**drawn(random.Random(1)), "flag": True, "amount": Decimal("0.00")}
    words.route.call(inputs)
    words.seen()
    wrong = {**words.right(inputs), "total": Decimal("-0.00")}
    words.answer = lambda _: wrong
    words.route.call(inputs)
    assert len(words.seen()) == 1


def test_outputs_in_another_order_or_number_are_left_to_python(words: InWords) -> None:
    inputs = drawn(random.Random(1))
    words.route.call(inputs)
    words.seen()
    right = words.right(inputs)
    others: list[Any] = [dict(reversed(right.items())), {**right, "more": 1}, {"total": right["total"]}, [], None]
    for wrong in others:
        words.answer = lambda _, wrong=wrong: wrong  # type: ignore[misc]
        words.route.call(inputs)
        assert len(words.seen()) == 1


# -- the time of the start ------------------------------------------------------------------------

AT = datetime(2026, 11, 16, 12, tzinfo=UTC)
LATE = """\
node_id: late_v1
type: data_transform
intent: Says how late something is

inputs:
  due: timestamp
  notes: {type: "array<string>", default: []}
  grace: {type: duration, default: 1h}

outputs:
  success:
    is_late: boolean
    by: duration

flow:
  - operation: compute
    compute:
      by: now() - due
      is_late: IF length(notes) > 0 THEN false ELSE by > grace
  - operation: return
    success: [is_late, by]
"""


class Gathered:
    """A substitute of `Route` that yields the given data once."""

    def __init__(self, *handed: tuple[Any, ...]) -> None:
        self.next: Any = ([], [(5, 5)], [[0, 0]] * len(LADDER), 0, 0, 0, 0, 0, list(handed))

    def drain(self) -> Any:
        found, self.next = self.next, ([], [], [[0, 0]] * len(LADDER), 0, 0, 0, 0, 0, [])
        return found

    def set(self, *_: object) -> None:
        pass


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[RoutedProgram, NodeFastEntry]]:
    path = tmp_path / "late_v1.vsp"
    path.write_text(LATE, encoding="utf-8")
    routes = routes_in(tmp_path)
    program = routes.program(compiled(path))
    vesper.load(path, engine="auto", routes=routes)
    assert program._way_in is not None
    with monkeypatch.context() as patch:
        patch.setattr(routes.migration, "tend", lambda *_, **__: None)  # who comes round would drain it too
        with routes.migration._round_lock:  # nor is anybody under way who has come round before
            patch.setattr(program._way_in, "_route", program._way_in._route)
        yield program, program._way_in
    routes.close()


def test_threads_that_load_a_node_share_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two would never be drained."""
    path = tmp_path / "late_v1.vsp"
    path.write_text(LATE, encoding="utf-8")
    routes = routes_in(tmp_path)
    program, make, made = routes.program(compiled(path)), RoutedProgram._make_fast_entry, []

    def slowly(self: RoutedProgram, *given: Any) -> NodeFastEntry:
        made.append(given)
        time.sleep(0.1)
        return make(self, *given)

    monkeypatch.setattr(RoutedProgram, "_make_fast_entry", slowly)
    how: Any = {"engine": "auto", "routes": routes}
    loading = [threading.Thread(target=vesper.load, args=(path,), kwargs=how) for _ in range(4)]
    for each in loading:
        each.start()
    for each in loading:
        each.join()
    assert len(made) == 1
    assert program._way_in is not None
    routes.close()


HANDED = ({"due": AT}, {"is_late": True, "by": timedelta()}, None, True, "it broke", AT)


def test_differences_are_compared_even_if_counting_fails(
    late: tuple[RoutedProgram, NodeFastEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, way_in = late
    way_in._route = Gathered(HANDED)  # type: ignore[assignment]
    seen = []
    monkeypatch.setattr(program, "seen", lambda *each: seen.append(each))
    monkeypatch.setattr(program.live, "time", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        way_in.drain()
    assert seen == [HANDED]


def test_differences_during_a_new_attempt_are_compared_after_it(
    late: tuple[RoutedProgram, NodeFastEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reporter of a new attempt holds the lock that the finder of a difference takes."""
    program, way_in = late
    way_in._route = Gathered(HANDED)  # type: ignore[assignment]
    live = program.live
    woken = []
    monkeypatch.setattr(live, "_wake", lambda: woken.append(live.has_unsent))
    state = replace(live.state, attempt=live.state.attempt + 1)
    telling = threading.Thread(target=live.update_state, args=(state, 1, {}), daemon=True)
    telling.start()
    telling.join(60)
    assert not telling.is_alive(), "it waits for itself"
    assert woken == [False]
    way_in.drain()
    assert woken == [False, True]
    assert live.local.mode is Mode.PYTHON_ONLY
    way_in.drain()
    assert woken == [False, True]


@pytest.mark.parametrize("mode", [Mode.PYTHON_ONLY, Mode.SHADOW_DIRECT, Mode.DIRECT_ONLY], ids=lambda each: each.value)
def test_a_node_that_takes_the_time_of_its_start_is_routed_there(mode: Mode, tmp_path: Path) -> None:
    path = tmp_path / "late_v1.vsp"
    path.write_text(LATE, encoding="utf-8")
    made = compiled(path)
    routes = routes_in(tmp_path, follow_cpu="100%", refresh="10s")
    routes.helper.rerun = lambda *_, **__: None  # type: ignore[method-assign]
    program = routes.program(made)
    node, python = vesper.load(path, engine="auto", routes=routes), vesper.load(path)
    assert program._way_in is not None
    ways = [DirectEngine().load(made).call_pathed({"due": AT + timedelta(hours=each)}, KEY, AT) for each in (-2, 2)]
    put_into(routes, program, mode, *(PathNote(each.path, (), ending_of(each.outcome)) for each in ways))
    program._way_in._sample = 0.0
    program._way_in._look(program.live.local)
    for hours in range(-30, 30):
        inputs, now = {"due": AT + timedelta(hours=hours)}, AT + timedelta(minutes=hours)
        assert node.call(inputs, now=now) == python.call(inputs, now=now)
    with pytest.raises(TypeError):
        node.call({"due": AT})
    with pytest.raises(vesper.BadInput):
        node.call({"due": 7}, now=AT)
    program.drain()
    served = dict(program.live._served)
    engine = "direct" if mode is Mode.DIRECT_ONLY else "python"
    assert served[f"{mode.value}/{engine}"] >= 60
    assert program._way_in.wait(30)
    routes.migration.tend()
    assert routes.followers.drain(30)
    routes.migration.tend(is_all=True)
    state = state_of(routes, program)
    assert not state.open
    assert state.clean == (61 if mode is Mode.SHADOW_DIRECT else state.clean)
    routes.close()
