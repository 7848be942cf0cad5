"""Journal: runs in doubt, unfinished runs, one run with its entries; resolve and recover."""

from __future__ import annotations

from vesper.dashboard.action import Action, Role
from vesper.dashboard.page import Page, Parameter
from vesper.dashboard.pages.journal.actions import recover, resolve_failed, resolve_happened, resolve_undone
from vesper.dashboard.pages.journal.overview import read_overview
from vesper.dashboard.pages.journal.run import read_run
from vesper.dashboard.stores import Topic

_FINISHES = (
    "Afterwards the dashboard finishes the run here, as the command does: with the grants of vesper.toml. "
    "Later steps of the run may perform effects."
)

PAGES = (
    Page(
        name="journal",
        path="/journal",
        title="Journal",
        read=read_overview,
        template="journal/overview.html",
        summary="Runs in doubt with the request and what to do, unfinished runs, and the newest runs by state.",
        topics=frozenset({Topic.JOURNAL}),
        menu="Journal",
        parameters=(
            Parameter("node", "text", "Only open runs of this node: an id, or the name of all its versions."),
            Parameter("page", "integer", "Page of the runs in doubt, from 1."),
        ),
    ),
    Page(
        name="journal_run",
        path="/journal/{execution}",
        title="Execution {execution}",
        read=read_run,
        template="journal/run.html",
        summary="A run with its entries, as `vesper journal show` has them, and its steps in doubt.",
        topics=frozenset({Topic.JOURNAL}),
        parameters=(Parameter("page", "integer", "Page of the entries, from 1."),),
    ),
)

ACTIONS = (
    Action(
        name="resolve_happened",
        path="/journal/{execution}/happened",
        role=Role.OPERATOR,
        perform=resolve_happened,
        summary=f"Records that the effect was performed, with this result. {_FINISHES}",
    ),
    Action(
        name="resolve_failed",
        path="/journal/{execution}/failed",
        role=Role.OPERATOR,
        perform=resolve_failed,
        summary=f"Records that the effect failed with this code. {_FINISHES}",
    ),
    Action(
        name="resolve_undone",
        path="/journal/{execution}/undone",
        role=Role.OPERATOR,
        perform=resolve_undone,
        summary=f"Be certain: the effect is performed now, a second time if it did happen. {_FINISHES}",
    ),
    Action(
        name="recover",
        path="/journal/recover",
        role=Role.OPERATOR,
        perform=recover,
        summary=(
            "Finishes the oldest unfinished runs here, as the command does. Effects that must not be "
            "repeated are not; others may be performed, with the grants of vesper.toml."
        ),
    ),
)
