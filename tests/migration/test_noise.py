"""An engine that differs from itself: it is found, kept, and holds its node until somebody closes it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import count

from tests.migration.memory_store import MemoryStore
from tests.migration.wrong_engine import Inputs, WrongProgram, recorded
from tests.support.nodes import PAYMENT_DECISION, compiled
from vesper.compiler import Compiled
from vesper.engines.engine import Done, Program
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.migration import ledger
from vesper.migration.comparator import Comparator
from vesper.migration.divergence import Divergence
from vesper.migration.modes import Mode
from vesper.migration.noise import SHARE, happened_of_noise, is_checked, noise_of, twice
from vesper.migration.reports import Difference
from vesper.migration.state import Close, NoiseFound, Noisy, Settings
from vesper.migration.store import Batch, NodeKey, SeenOnPath

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
    """Another fee at every second call."""
    calls = count()

    def lie(_inputs: Inputs, done: Done) -> Done:
        assert isinstance(done.outcome, Returned)
        return replace(done, outcome=Returned({**done.outcome.value, "fee": Decimal(next(calls) % 2)}))

    return WrongProgram(python(), lie)


def test_engines_agree_with_themselves() -> None:
    transcript = recorded(python(), INPUTS)
    for engine in ENGINES.values():
        assert noise_of(engine.load(node()), node(), transcript, Comparator(node())) is None


def test_what_differs_from_itself_is_found() -> None:
    found = noise_of(unsteady(), node(), recorded(python(), INPUTS), Comparator(node()))
    assert found == Difference("noise", "outputs.fee", "returned", "returned")


def test_a_function_is_called_twice() -> None:
    calls = count()
    judge = Comparator(node()).outcomes
    value = recorded(python(), INPUTS).outcome
    assert isinstance(value, Returned)
    assert twice(lambda: value, judge) is None
    found = twice(lambda: Returned({**value.value, "risk": next(calls)}), judge)
    assert found == Difference("noise", "outputs.risk", "returned", "returned")
    assert next(calls) == 2


def test_a_few_percent_are_checked_and_everybody_draws_alike() -> None:
    key = b"0123456789abcdef"
    drawn = [is_checked("pay_v1", f"run {number}".encode(), key) for number in range(20_000)]
    assert drawn == [is_checked("pay_v1", f"run {number}".encode(), key) for number in range(20_000)]
    assert abs(sum(drawn) / 20_000 - SHARE / 10_000) < 0.004


def test_noise_is_kept_blocks_and_is_closed() -> None:
    store, settings = MemoryStore(), Settings()
    transcript = recorded(python(), INPUTS)
    difference = noise_of(unsteady(), node(), transcript, Comparator(node()))
    assert difference is not None
    happened = happened_of_noise(difference, "python", node(), transcript, False, 7)
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
    assert (kept.kind, kept.engines, kept.status) == ("noise", ("python", "python"), "open")
    closed = ledger.tell(store, KEY, Close(fingerprint, "ann", "the cache is gone"), settings, 8)
    assert closed.state.noise == {}
    assert closed.state.mode is Mode.CANARY_DIRECT
    (text,) = store.divergences(KEY)
    kept = Divergence.from_text(text)
    assert (kept.status, kept.closed_by, kept.closed_why) == ("closed", "ann", "the cache is gone")
    assert ledger.verify_history(store.history(KEY)) is None
