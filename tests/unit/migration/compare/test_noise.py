"""Noise: an engine that differs from itself is found, stored, and blocks promotion until it is closed."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from tests.support.nodes import PAYMENT_DECISION, compiled
from tests.unit.migration.support.memory_store import MemoryStore
from tests.unit.migration.support.routed import Misbehaving, divergences_of, lying, payment, routes_in, state_of
from tests.unit.migration.support.wrong_engine import Inputs, WrongProgram, recorded
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.engine import Done, Program
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.divergence_record import divergence_of
from vesper.migration.compare.noise import compare_runs, follow_with_check, is_checked, noise_of
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Agreement, Difference, Disagreement, Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import Close, NoiseFound, Noisy, Settings
from vesper.migration.router.routes import Routes, happened_of
from vesper.migration.stores import ledger
from vesper.migration.stores.store import Batch, NodeKey, SeenOnPath

INPUTS: Inputs = {
    "amount": Decimal("734.56"),
    "balance": Decimal("9876.54"),
    "currency": "GBP",
    "country": "FR",
    "user_age_days": 812,
}
KEY = NodeKey("payment_decision_v1", "e1")


@cache
def node() -> Compiled:
    return compiled(PAYMENT_DECISION)


@cache
def python() -> Program:
    return ENGINES["python"].load(node())


def unsteady() -> WrongProgram:
    """Return another fee at every second call."""
    calls = count()

    def lie(_inputs: Inputs, done: Done) -> Done:
        assert isinstance(done.outcome, Returned)
        return replace(done, outcome=Returned({**done.outcome.value, "fee": Decimal(next(calls) % 2)}))

    return WrongProgram(python(), lie)


def test_engines_agree_with_themselves() -> None:
    transcript = recorded(python(), INPUTS)
    for engine in ENGINES.values():
        assert noise_of(engine.load(node()), node(), transcript, Comparator(node())) is None


def test_noise_is_found() -> None:
    found = noise_of(unsteady(), node(), recorded(python(), INPUTS), Comparator(node()))
    assert found == Difference("noise", "outputs.fee", "returned", "returned")


def test_a_function_is_called_twice() -> None:
    calls = count()
    judge = Comparator(node()).compare_outcomes
    value = recorded(python(), INPUTS).outcome
    assert isinstance(value, Returned)
    assert compare_runs(lambda: value, judge) is None
    found = compare_runs(lambda: Returned({**value.value, "risk": next(calls)}), judge)
    assert found == Difference("noise", "outputs.risk", "returned", "returned")
    assert next(calls) == 2


def agreement(fingerprint: int = 0, points: bytes = b"") -> Agreement:
    return Agreement(PathNote(points, (), "returned"), fingerprint)


DIFFERS = Difference("outcome", "outputs.fee", "returned", "returned")
DISAGREES = Disagreement(DIFFERS, None, None, Transcript({}, None, (), Returned({})), None)


TRANSCRIPT = Transcript({}, None, (), Returned({}))


def noise(where: str) -> Disagreement:
    return Disagreement(Difference("noise", where, "returned", "returned"), None, None, TRANSCRIPT, None, "run-1")


@pytest.mark.parametrize(
    "reports, comes_to",
    [
        ([agreement(1)], agreement(1)),  # not among those that are checked
        ([agreement(), agreement()], agreement()),
        ([agreement(), None], agreement()),
        ([agreement(), Lost("time")], agreement()),
        ([agreement(), Fault("panicked")], Fault("panicked")),
        ([agreement(), DISAGREES], noise("outputs.fee")),
        ([agreement(), agreement(0, b"\x01")], noise("the path")),
        ([agreement(), agreement(50)], noise("what was read")),
        ([DISAGREES], DISAGREES),
        ([Lost("time")], Lost("time")),
        ([None], None),
    ],
)
def test_reports_of_two_shadow_runs(reports: list[Report | None], comes_to: Report | None) -> None:
    waiting = iter(reports)
    assert follow_with_check(lambda: next(waiting), TRANSCRIPT, "run-1") == comes_to
    assert list(waiting) == [], "as often as that and no more"


def test_a_few_percent_are_checked() -> None:
    assert sum(is_checked(number) for number in range(10_000)) == 200


def test_noise_in_traffic_reaches_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second outcome on the same records differs; the agreement before it does not count."""
    routes = routes_in(tmp_path, MemoryStore())
    try:
        direct = Misbehaving(node())
        monkeypatch.setattr(routes, "_direct", lambda _: direct)
        program = routes.program(node())
        turns = count()
        direct.does = lambda ran: lying(ran) if next(turns) % 2 else ran
        amount = next(
            f"{number}.00" for number in range(1, 500)
            if is_checked(fingerprint_of(routes, payment(f"{number}.00")))
        )  # fmt: skip
        monkeypatch.setattr(program.chooser, "admits", lambda: True)
        program.call(payment(amount))
        routes.followers.drain(5)
        routes.migration.tend(is_all=True)
        state = state_of(routes, program)
        (kept,) = divergences_of(routes, program)
        assert direct.calls == 2
        assert (kept.kind, kept.engines, kept.where) == ("noise", ("interp", "interp"), "outputs.decision")
        assert state.noise == {kept.fingerprint: "outputs.decision"}
        assert (state.clean, state.compared, state.divergences) == (0, 0, 0)
    finally:
        routes.close()


@cache
def direct_program() -> DirectProgram:
    return DirectEngine().load(node())


def fingerprint_of(routes: Routes, inputs: Inputs) -> int:
    return direct_program().call_pathed(inputs, routes.migration.key).fingerprint


def test_noise_is_kept_blocks_and_is_closed() -> None:
    store, settings = MemoryStore(), Settings()
    transcript = recorded(python(), INPUTS)
    difference = noise_of(unsteady(), node(), transcript, Comparator(node()))
    assert difference is not None
    report = Disagreement(difference, None, None, transcript, None)
    happened = happened_of(report, divergence_of(report, node(), False, 7))
    assert isinstance(happened.event, Noisy)
    fingerprint = happened.event.fingerprint
    agreed = {"main": SeenOnPath(frozenset(range(400)), 400)}
    applied = ledger.apply(store, KEY, Batch("p", 1, (happened,), agreed), settings, 7)
    assert applied.decisions[0] == NoiseFound(fingerprint, "outputs.fee")
    assert applied.state.mode is Mode.SHADOW_DIRECT
    again = ledger.load(store, KEY, settings)
    assert again.noise == {fingerprint: "outputs.fee"}
    (text,) = store.divergences(KEY)
    kept = Divergence.from_text(text)
    assert (kept.kind, kept.engines, kept.status) == ("noise", ("interp", "interp"), "open")
    closed = ledger.apply_event(store, KEY, Close(fingerprint, "ann", "the cache is gone"), settings, 8)
    assert closed.state.noise == {}
    assert closed.state.mode is Mode.CANARY_DIRECT
    (text,) = store.divergences(KEY)
    kept = Divergence.from_text(text)
    assert (kept.status, kept.closed_by, kept.closed_why) == ("closed", "ann", "the cache is gone")
    assert ledger.verify_history(store.history(KEY)) is None
