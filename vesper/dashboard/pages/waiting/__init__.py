"""Waiting: runs that sleep, wait for signals or need an answer; answer and cancel."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.dashboard.action import Action, Role
from vesper.dashboard.page import Context, Page, Paging, Parameter
from vesper.dashboard.pages.waiting.actions import answer, cancel, require_wait
from vesper.dashboard.pages.waiting.answer_form import FormField, form_fields
from vesper.dashboard.stores import Topic
from vesper.host.waiting_runs import WaitingRun, waiting_runs
from vesper.values.model import printable

KINDS = ("interrupt", "signal", "sleep")
_RUNS_A_PAGE = 50
_MAX_COUNTED = 1_000


@dataclass(frozen=True, slots=True)
class WaitView:
    """A run that waits."""

    execution: str
    node: str
    step: str
    kind: str
    name: str
    """The signal, or the kind of an interrupt."""
    message: str | None
    """Of an interrupt; hidden for a sensitive run."""
    since_us: int
    due_us: int | None
    """End of the wait; None for one without end."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Runs that wait in one way, oldest first."""

    kind: str
    interrupts: int
    """At most 1,000 of each kind are counted."""
    signals: int
    sleeps: int
    runs: tuple[WaitView, ...]
    paging: Paging


@dataclass(frozen=True, slots=True)
class WaitDetail:
    """One run that waits, with the form of its answer."""

    run: WaitView
    answer_type: str | None
    fields: tuple[FormField, ...]


def read_waiting(context: Context) -> Waiting:
    """Read the runs that wait, with the filters of the query."""
    journal, node = context.stores.journal, context.text("node")
    kind = context.choice("kind", KINDS, KINDS[0])
    rows = {each: journal.due(kind=each, node=node, limit=_MAX_COUNTED) for each in KINDS}
    shown = rows[str(kind)]
    start = min((context.page_number() - 1) * _RUNS_A_PAGE, len(shown))
    after = shown[start - 1].id if start else None
    return Waiting(
        str(kind),
        len(rows["interrupt"]),
        len(rows["signal"]),
        len(rows["sleep"]),
        tuple(map(_view, waiting_runs(journal, kind, node, _RUNS_A_PAGE, after))),
        context.paging(len(shown) > start + _RUNS_A_PAGE),
    )


def read_wait(context: Context) -> WaitDetail:
    """Read the run of the path. Raises `NotFound`."""
    found = require_wait(context.stores.journal, context.path["execution"])
    is_answerable = found.kind == "interrupt"
    fields = form_fields(found.answer_type) if is_answerable else ()
    shown = str(found.answer_type) if is_answerable and found.answer_type is not None else None
    return WaitDetail(_view(found), shown, fields)


def _view(run: WaitingRun) -> WaitView:
    message = None if run.message is None else printable(run.message)
    return WaitView(
        run.execution, run.node_id, printable(run.path), run.kind, run.name, message, run.since_us, run.due_us
    )


PAGES = (
    Page(
        name="waiting",
        path="/workload",
        title="Waiting",
        read=read_waiting,
        template="waiting/list.html",
        summary="Runs that wait for an answer, a signal or a time, with what they wait for and until when.",
        topics=frozenset({Topic.JOURNAL}),
        menu="Work",
        parameters=(
            Parameter("kind", "text", "Runs that wait so; by default those that need an answer.", KINDS),
            Parameter("node", "text", "Only runs of this node: an id, or the name of all its versions."),
            Parameter("page", "integer", "Page of the list, from 1."),
        ),
    ),
    Page(
        name="wait",
        path="/workload/runs/{execution}",
        title="Waiting {execution}",
        read=read_wait,
        template="waiting/run.html",
        summary="A run that waits, with the type of the answer that an interrupt needs.",
    ),
)

ACTIONS = (
    Action(
        name="answer_interrupt",
        path="/workload/runs/{execution}/answer",
        role=Role.OPERATOR,
        perform=answer,
        summary="Records the answer; a service with this journal continues the run with it. The first answer counts.",
    ),
    Action(
        name="cancel_run",
        path="/workload/runs/{execution}/cancel",
        role=Role.OPERATOR,
        perform=cancel,
        summary="Its wait fails with the code `cancelled`: the step's `on_error` decides what the run does then.",
    ),
)
