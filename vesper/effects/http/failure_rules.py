"""Rules of a provider that give responses another failure code than that of their status."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from vesper.effects.http.credentials import header_name
from vesper.effects.settings import Table

_CODE = re.compile(r"unavailable|http_[45][0-9][0-9]", re.ASCII)


@dataclass(frozen=True, slots=True)
class FailureRule:
    """One entry of `failures`. The first entry that fits a response decides."""

    status: int
    code: str
    headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case; the value `*` is any."""
    body: tuple[tuple[tuple[str, ...], str], ...] = ()
    """Paths of members of the JSON body, and their values as JSON texts."""
    retry_at: str | None = None
    """Header with the time of the next attempt, in seconds since 1970."""
    may_have_happened: bool = False


def read_failures(table: Table) -> tuple[FailureRule, ...]:
    """Read the setting `failures` of a provider. Raises `ConfigError`."""
    return tuple(_rule(each) for each in table.list_of_tables("failures"))


def _rule(table: Table) -> FailureRule:
    code = table.text("code")
    if not _CODE.fullmatch(code):
        raise table.error("code", f"`unavailable`, or `http_` and a status from 400 to 599, is expected, not `{code}`")
    headers, body = table.table("headers"), table.table("body")
    retry_at = header_name(table, "retry_at", table.text("retry_at")).lower() if "retry_at" in table else None
    rule = FailureRule(
        table.integer("status", least=200, most=599),
        code,
        tuple((header_name(headers, each, each).lower(), headers.text(each)) for each in headers.names()),
        tuple((tuple(each.split(".")), _member(body, each)) for each in body.names()),
        retry_at,
        table.boolean("may_have_happened", False),
    )
    table.done()
    if rule.status < 300 and not rule.body and not rule.headers:
        raise table.error("status", f"every answer with status {rule.status} would fail: add `body` or `headers`")
    return rule


def _member(table: Table, name: str) -> str:
    value = table.value(name)
    if not isinstance(value, str | bool | int):
        raise table.error(name, "a text, a whole number, true or false is expected")
    return json.dumps(value)
