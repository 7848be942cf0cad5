"""The audit log, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from vesper.dashboard.action import Role
from vesper.dashboard.page import Context
from vesper.dashboard.pages.audit.verification import Verification, last_verification
from vesper.journal.audit_search import AuditFilter, details_of_line, result_of_line, search_audit
from vesper.journal.entry_text import limit_lines
from vesper.journal.value_layout import lay_out
from vesper.values.model import printable

_LINES_A_PAGE = 50
_MAX_SEARCHED = 10_000
"""Lines that one page looks at; the next page continues."""
_MAX_SEQ = 10**15
_COLUMNS = 96


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A line of the log."""

    seq: int
    at_us: int | None
    person: str
    """The actor of a run, or the author of a manual change."""
    action: str
    result: str
    node: str
    execution: str
    details: tuple[str, ...]
    """Caller and fields as lines of text."""
    hash: str


@dataclass(frozen=True, slots=True)
class AuditLogView:
    """A page of the log, with the state of its chain."""

    lines: int
    """Lines in the whole log."""
    last_hash: str
    is_keyed: bool
    """False: the hashes use no secret, so that a writer of the log could recompute them."""
    verification: Verification | None
    """The last verification by this dashboard."""
    found: tuple[AuditLine, ...]
    searched: int
    searched_to: int | None
    """Number of the oldest line that was looked at, where older ones follow."""
    next: str | None
    """Address of the next, older page."""
    first: str | None
    """Address of the newest page; None on it."""
    has_filters: bool
    export_role: Role
    """The role that the export needs."""


def read_log(context: Context) -> AuditLogView:
    """Search the log by the parameters of the query."""
    journal = context.stores.audit
    wanted = AuditFilter(
        context.text("node"),
        context.text("person"),
        context.text("action"),
        context.moment("since"),
        context.moment("until"),
        context.text("text"),
    )
    before = context.integer("before", 0, 1, _MAX_SEQ) or None
    page = search_audit(journal, wanted, _LINES_A_PAGE, before, _MAX_SEARCHED)
    count, last = journal.audit_head()
    filters = {name: text for name, text in context.query.items() if name != "before" and text}
    return AuditLogView(
        count,
        last,
        journal.audit_key is not None,
        last_verification(journal),
        tuple(map(_line, page.events)),
        page.searched,
        page.rest,
        None if page.rest is None else "?" + urlencode({**filters, "before": page.rest}),
        None if before is None else "?" + urlencode(filters),
        bool(filters),
        Role.OPERATOR,
    )


def _line(event: Mapping[str, object]) -> AuditLine:
    def text(name: str) -> str:
        return printable(str(event.get(name, "")))

    at_us, fields = event.get("at_us"), event.get("fields")
    author = fields.get("by") if isinstance(fields, dict) else None
    return AuditLine(
        int(str(event["seq"])),
        at_us if isinstance(at_us, int) else None,
        text("actor") or printable(str(author or "")),
        text("action"),
        result_of_line(event),
        text("node_id"),
        text("execution"),
        tuple(limit_lines(lay_out(details_of_line(event), _COLUMNS, ""), "the export has all of it")),
        text("hash"),
    )
