"""A store with a divergence of a known fault: above 100 the fee of the direct engine is a cent too high."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache

from tests.support.nodes import PAYMENT_DECISION, compiled
from tests.unit.migration.support.wrong_engine import Inputs, recorded
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Done
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.divergence_record import divergence_of
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Difference, Disagreement
from vesper.migration.control.state import Diverged, Settings
from vesper.migration.stores import ledger
from vesper.migration.stores.store import Batch, Happened, NodeKey, Store

NOON = 1_794_744_000_000_000
"""2026-11-15 12:00:00Z."""
MINUTE = 60_000_000
KEY = NodeKey("payment_decision_v1", "5b1f6e0a9c3d47e2a1b0c9d8e7f60514")
INPUTS: Inputs = {
    "amount": Decimal("734.56"),
    "balance": Decimal("9876.54"),
    "currency": "GBP",
    "country": "FR",
    "user_age_days": 812,
    "flagged": True,
}


def a_cent_more(inputs: Inputs, done: Done) -> Done:
    """The lie: above 100 the fee is a cent too high."""
    outcome = done.outcome
    if not isinstance(outcome, Returned) or not Decimal(str(inputs["amount"])) > 100:
        return done
    fee = outcome.value["fee"]
    assert isinstance(fee, Decimal)
    return replace(done, outcome=Returned({**outcome.value, "fee": fee + Decimal("0.01")}))


@cache
def node() -> Compiled:
    return compiled(PAYMENT_DECISION)


@cache
def seen(amount: str = "734.56", at_us: int = NOON) -> tuple[Divergence, PathNote]:
    """What the router keeps of one execution that diverges."""
    inputs = {**INPUTS, "amount": Decimal(amount)}
    transcript = recorded(ENGINES["python"].load(node()), inputs)
    told = DirectEngine().load(node()).call_pathed(inputs, b"0" * 16)
    note = PathNote(told.path, (), "returned")
    wrong = a_cent_more(inputs, Done(told.outcome, ())).outcome
    difference = Difference("outcome", "outputs.fee", "returned", "returned")
    report = Disagreement(difference, note, told.fingerprint, transcript, wrong)
    return divergence_of(report, node(), False, at_us), note


def put(store: Store, key: NodeKey, *happened: Happened, paths: dict[str, str] | None = None) -> None:
    """As a process tells the store."""
    process = f"p{len(store.history(key))}.{len(store.divergences(key))}.{NOON}"
    ledger.apply(store, key, Batch(process, 1, happened, paths=paths or {}), Settings(), NOON)


def fill(store: Store) -> str:
    """Two executions of the same divergence."""
    for number, amount in enumerate(("734.56", "150.00")):
        found, note = seen(amount, NOON + number * MINUTE)
        event = Diverged(note.name, found.fingerprint)
        batch = Batch("worker", number + 1, (Happened(event, found, number),), paths={note.name: note.to_text()})
        ledger.apply(store, KEY, batch, Settings(), NOON + number * MINUTE)
    return seen()[0].fingerprint
