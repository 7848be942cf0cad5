"""Audit: search of the log, verification of its chain, and its export."""

from __future__ import annotations

from starlette.routing import Route

from vesper.dashboard.action import Action, Role
from vesper.dashboard.page import Page, Parameter
from vesper.dashboard.pages.audit.export import export
from vesper.dashboard.pages.audit.log import read_log
from vesper.dashboard.pages.audit.verification import verify
from vesper.dashboard.stores import Topic

PAGES = (
    Page(
        name="audit",
        path="/audit",
        title="Audit",
        read=read_log,
        template="audit/log.html",
        summary="Lines of the audit log, newest first, with the state of its hash chain.",
        topics=frozenset({Topic.AUDIT}),
        menu="Audit",
        parameters=(
            Parameter("node", "text", "An id, or the name of all its versions."),
            Parameter("person", "text", "The actor or user id of a run, or the author of a manual change."),
            Parameter("action", "text", "The kind of the line, such as `journal_resolve`."),
            Parameter("since", "text", "At or after: `2h`, `2026-11-15`, or an RFC 3339 time."),
            Parameter("until", "text", "Before: as `since`."),
            Parameter("text", "text", "Part of a line, in its own spelling."),
            Parameter("before", "integer", "Only lines with a lower number."),
        ),
    ),
)

ACTIONS = (
    Action(
        name="verify_audit",
        path="/audit/verify",
        role=Role.VIEWER,
        perform=verify,
        summary="Checks every line of the log and its hash chain, as the command does. Changes nothing.",
        needs_reason=False,
    ),
)

ROUTES = (Route("/audit/export", export),)
