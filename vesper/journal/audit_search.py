"""Search of the audit log, newest first, for commands and pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vesper.journal.audit import FIRST, decode_audit_line
from vesper.journal.journal import Journal
from vesper.journal.typed_json import encode
from vesper.values.model import printable
from vesper.values.node_id import is_of_node


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of lines. A member that is None matches any line."""

    node: str | None = None
    """An id, or the name of all its versions."""
    person: str | None = None
    """The actor or user id of a run, or the author of a manual change."""
    action: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    text: str | None = None
    """Part of a line, in its own spelling."""

    def needles(self) -> tuple[bytes, ...]:
        """Return bytes that every matching line contains: searching for them is cheaper than decoding a line."""
        wanted = (self.node, self.person, self.action, self.text)
        return tuple(encode(each)[1:-1] for each in wanted if each is not None)

    def matches(self, event: Mapping[str, object]) -> bool:
        """Return whether a line that contains all needles matches."""
        fields, at_us = event.get("fields"), event.get("at_us")
        author = fields.get("by") if isinstance(fields, dict) else None
        moment = at_us if isinstance(at_us, int) else 0
        return (
            (self.node is None or is_of_node(str(event.get("node_id", "")), self.node))
            and (self.person is None or self.person in (event.get("actor"), event.get("user_id"), author))
            and (self.action is None or event.get("action") == self.action)
            and (self.since_us is None or moment >= self.since_us)
            and (self.until_us is None or moment < self.until_us)
        )


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Lines of the log, newest first."""

    events: tuple[Mapping[str, object], ...]
    searched: int
    """Number of lines that were looked at."""
    rest: int | None
    """`before` of the next page; None at the end of the log."""


def search_audit(
    journal: Journal, wanted: AuditFilter, limit: int, before: int | None = None, most: int | None = None
) -> AuditPage:
    """Return the newest matching lines with `hash` and `previous`. Reads at most `most` lines."""
    found: list[dict[str, object]] = []
    searched, last, needles = 0, None, wanted.needles()
    needs_previous: dict[str, object] | None = None
    for seq, line, hash_ in journal.newest_audit_rows(before):
        if needs_previous is not None:
            needs_previous["previous"] = hash_.hex()
            needs_previous = None
        if len(found) == limit or searched == most:
            return AuditPage(tuple(found), searched, last)
        searched, last = searched + 1, seq
        if all(each in line for each in needles) and wanted.matches(event := decode_audit_line(seq, line)):
            needs_previous = {**event, "hash": hash_.hex(), "previous": FIRST.hex()}
            found.append(needs_previous)
    return AuditPage(tuple(found), searched, None)


_CALLER = {"tenant": "tenant", "user_id": "user_id", "transaction_id": "transaction_id", "key": "idempotency_key"}
"""Members of a line that are shown below it; the key of an effect is among its fields."""


def result_of_line(event: Mapping[str, object]) -> str:
    """Return the result that a line records, or an empty text."""
    fields = event.get("fields")
    return printable(str(fields.get("result", ""))) if isinstance(fields, dict) else ""


def details_of_line(event: Mapping[str, object]) -> dict[str, object]:
    """Return the caller and the fields of a line, without its result."""
    fields = event.get("fields")
    shown: dict[str, object] = {shown: event[name] for name, shown in _CALLER.items() if name in event}
    shown |= {printable(name): value for name, value in fields.items()} if isinstance(fields, dict) else {}
    return {name: value for name, value in shown.items() if name not in ("result", "outcome")}
