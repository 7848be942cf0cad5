"""Receipts: one row for each write that happened, in the transaction of that write.

Whoever writes puts the receipt down first. A second one with the same name waits there until the first has committed or
rolled back (on the row in PostgreSQL, on the lock of the database in SQLite), and then finds the receipt and what came
of it, or goes on as if it were the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime

from vesper.effects.database.session import MissingTable, Session
from vesper.effects.performer import Ask, EffectFailed

RECEIPTS = {
    "sqlite": "CREATE TABLE IF NOT EXISTS vesper_receipts "
    "(receipt TEXT NOT NULL PRIMARY KEY, value TEXT, at TEXT NOT NULL)",
    "postgres": "CREATE TABLE IF NOT EXISTS vesper_receipts "
    "(receipt text NOT NULL PRIMARY KEY, value text, at timestamptz NOT NULL)",
}
_PUT = "INSERT INTO vesper_receipts (receipt, at) VALUES (:receipt, :at) ON CONFLICT (receipt) DO NOTHING"
_FILL = "UPDATE vesper_receipts SET value = :value WHERE receipt = :receipt"
_FIND = "SELECT value FROM vesper_receipts WHERE receipt = :receipt"
_LONGEST_NAME = 500


class ReceiptsMissing(EffectFailed):
    """The table of receipts is not there yet."""


def receipt_name(ask: Ask) -> str:
    """The name of a write among all of its database.

    A key says of whom a write is, not which one: two steps of one event handler have the same. So the name of a keyed
    write has its statement in it too. A name that no index would hold stands there by its hash.
    """
    name = ask.receipt
    if ask.effect_class == "keyed":
        what = "\0".join((ask.effect, *(f"{field}={ask.fixed[field]}" for field in sorted(ask.fixed))))
        name = f"{name}/{hashlib.sha256(what.encode()).hexdigest()[:16]}"
    if len(name) <= _LONGEST_NAME and name.isprintable():
        return name
    return f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"


def once(session: Session, receipt: str, act: Callable[[Session], str]) -> str:
    """What `act` gives, or gave when it was done under this receipt before."""
    try:
        is_first = session.change(_PUT, {"receipt": receipt, "at": datetime.now(UTC)}) == 1
    except MissingTable as missing:
        raise ReceiptsMissing("unavailable", missing.message) from missing
    if not is_first:
        found = find(session, receipt)
        if found is None:
            raise EffectFailed("unavailable", "another attempt at this very write is not finished; try again")
        return found
    value = act(session)
    session.change(_FILL, {"receipt": receipt, "value": value})
    return value


def find(session: Session, receipt: str) -> str | None:
    """What came of the write with this receipt; None where it did not happen."""
    try:
        _, rows = session.rows(_FIND, {"receipt": receipt}, 1)
    except MissingTable:
        return None
    for (value,) in rows:
        return None if value is None else str(value)
    return None
