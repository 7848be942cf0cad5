"""Changes of waiting runs by a person: an answer, and the end of a wait."""

from __future__ import annotations

from collections.abc import Mapping

from vesper.dashboard.action import Context, Done, Refused
from vesper.dashboard.page import NotFound
from vesper.dashboard.pages.waiting.answer_form import answer_of
from vesper.host import waiting_runs
from vesper.host.waiting_runs import NotWaiting, WaitingRun, WrongValue, find_waiting
from vesper.journal.journal import Journal, NotTaken, UnknownExecution
from vesper.values.model import printable

_LOOK_AGAIN = "Nothing was changed. Load the page again: another person, a time or a signal may have been faster."


def answer(context: Context, fields: Mapping[str, str]) -> Done:
    """Answer the interrupt of the path with the values of the form."""
    run = _find(context)
    value = answer_of(run.answer_type, fields)
    try:
        waiting_runs.answer(context.stores.journal, run.execution, value, context.caller.name, fields["reason"])
    except (NotWaiting, WrongValue) as problem:
        raise Refused(printable(str(problem)), _LOOK_AGAIN) from None
    return Done(f"Answered {printable(run.path)} of {run.node_id}. The run goes on.", "/workload")


def cancel(context: Context, fields: Mapping[str, str]) -> Done:
    """Cancel the wait of the path."""
    run = _find(context)
    try:
        waiting_runs.cancel(context.stores.journal, run.execution, fields["reason"], context.caller.name)
    except NotTaken as problem:
        raise Refused(printable(str(problem)), _LOOK_AGAIN) from None
    return Done(f"Cancelled the wait {printable(run.path)} of {run.node_id}.", "/workload")


def _find(context: Context) -> WaitingRun:
    return require_wait(context.stores.journal, context.path["execution"])


def require_wait(journal: Journal, execution: str) -> WaitingRun:
    """Return the wait of a run. Raises `NotFound`."""
    try:
        found = find_waiting(journal, execution)
        if found is not None and found.execution == execution:
            return found
    except UnknownExecution:
        pass
    raise NotFound(
        f"no execution `{printable(execution[:80])}` waits",
        "It went on, ended or was cancelled meanwhile: the page Journal shows it.",
    )
