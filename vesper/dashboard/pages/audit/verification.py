"""Verification of the audit log in a thread, one at a time for each journal."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from vesper.dashboard.action import Context, Done, Refused
from vesper.journal.audit import verify_audit
from vesper.journal.journal import Journal
from vesper.values.model import printable


@dataclass(frozen=True, slots=True)
class Verification:
    """A verification of the whole log."""

    person: str
    began_us: int
    ended_us: int | None
    """None while it runs."""
    verified: int
    lines: int
    problems: tuple[str, ...]
    """The first damaged place first; none in an intact log."""


def last_verification(journal: Journal) -> Verification | None:
    """Return the verification that runs, or the last one of this process."""
    with _LOCK:
        return _LAST.get(journal)


def verify(context: Context, _fields: Mapping[str, str]) -> Done:
    """Begin a verification."""
    journal = context.stores.audit
    count, _ = journal.audit_head()  # an unreachable journal is no damaged log
    begun = Verification(context.caller.name, time.time_ns() // 1000, None, 0, count, ())
    with _LOCK:
        last = _LAST.get(journal)
        if last is not None and last.ended_us is None:
            raise Refused("the log is being verified already", "The page Audit shows its progress.")
        _LAST[journal] = begun
    threading.Thread(target=_run, args=(journal, begun), name="vesper-audit-verify", daemon=True).start()
    return Done(f"Verifying {count:,} lines of the audit log.", "/audit")


def _run(journal: Journal, begun: Verification) -> None:
    count = begun.lines

    def report(verified: int, lines: int) -> None:
        nonlocal count
        count = lines
        with _LOCK:
            _LAST[journal] = replace(begun, verified=verified, lines=lines)

    try:
        problems = tuple(map(printable, verify_audit(journal, report=report)))
    except Exception as error:  # noqa: BLE001  # whatever it is, the page must not show a verification that never ends
        problems = (f"the verification broke: {type(error).__name__}: {printable(str(error))}",)
    with _LOCK:
        _LAST[journal] = replace(begun, ended_us=time.time_ns() // 1000, verified=count, lines=count, problems=problems)


_LOCK = threading.Lock()
_LAST: WeakKeyDictionary[Journal, Verification] = WeakKeyDictionary()
