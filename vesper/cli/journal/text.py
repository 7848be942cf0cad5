"""Executions of the journal as text and as JSON.

Text is bounded: a long body is cut, with a note. `--format json` is complete, in the typed JSON of the journal
(`{"$decimal": "1.50"}`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vesper.cli.output.value_lines import pad, value_lines
from vesper.host.masking import SENSITIVE
from vesper.journal.entry import Stored
from vesper.journal.entry_text import ERASED, effect_text, entry_values, limit_lines, words
from vesper.journal.journal import Recorded, Summary
from vesper.journal.moments import moment_json, time_text, took_text
from vesper.journal.typed_json import encode
from vesper.language.diagnostics.excerpt import display_width
from vesper.values.model import printable

_SHORT = 18
"""Characters of an id in a list: the time of a version 7 UUID to a fraction of a millisecond."""


# -- names ----------------------------------------------------------------------------------------


def short_ids(executions: Sequence[str]) -> dict[str, str]:
    """Shorten ids for a list; an id stays whole where its prefix is not unique."""
    seen: dict[str, int] = {}
    for each in executions:
        seen[each[:_SHORT]] = seen.get(each[:_SHORT], 0) + 1
    return {each: each[:_SHORT] if seen[each[:_SHORT]] == 1 else each for each in executions}


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows in columns."""
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(pad(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


# -- lists ----------------------------------------------------------------------------------------


def list_lines(summaries: Sequence[Summary], now_us: int) -> list[str]:
    """Render executions as a table with a heading."""
    shorts = short_ids([each.execution for each in summaries])
    rows = [["execution", "node", "status", "outcome", "started", "took", "engine"]]
    for each in summaries:
        until = now_us if each.status.is_under_way else each.updated_us
        rows.append(
            [
                printable(shorts[each.execution]),
                printable(each.node_id),
                words(each.status),
                words(each.outcome or ""),
                time_text(each.started_us),
                took_text(until - each.started_us),
                printable(each.engine),
            ]
        )
    return table(rows)


def summary_json(each: Summary) -> dict[str, Any]:
    return {
        "execution": each.execution,
        "node": each.node_id,
        "semantic_hash": each.semantic_hash,
        "status": str(each.status),
        "outcome": each.outcome,
        "started": moment_json(each.started_us),
        "updated": moment_json(each.updated_us),
        "took_us": each.updated_us - each.started_us,
        "engine": each.engine,
        "owner": each.owner,
        "fence": each.fence,
        "is_joined": each.is_joined,
        "is_sensitive": each.is_sensitive,
    }


# -- one execution --------------------------------------------------------------------------------


def show_lines(recorded: Recorded, now_us: int, reveals: bool) -> list[str]:
    """Render a run and its entries."""
    entries = recorded.entries
    return [*_header(recorded, now_us, reveals), "", *_entries(entries, recorded.summary, reveals)]


def _header(recorded: Recorded, now_us: int, reveals: bool) -> list[str]:
    each = recorded.summary
    until = now_us if each.status.is_under_way else each.updated_us
    rows: dict[str, str] = {
        "node": f"{each.node_id}, as of {each.semantic_hash[:12]}",
        "status": words(each.status) + (f": {words(each.outcome)}" if each.outcome else ""),
        "started": time_text(each.started_us, 3),
        "took": took_text(until - each.started_us) + (" so far" if each.status.is_under_way else ""),
        "engine": each.engine,
        "owner": f"{each.owner or 'no process'}, fence {each.fence}",
    }
    if each.is_joined:
        rows["joined"] = "part of a transaction of its caller"
    if any(stored.is_erased for stored in recorded.entries):
        rows["sensitive"] = "its key was deleted: its values are unreadable"
    elif each.is_sensitive:
        rows["sensitive"] = "its values are shown" if reveals else "its values are hidden; --reveal shows them"
    width = max(map(len, rows))
    lines = [f"  {name:<{width}}  {printable(text)}" for name, text in rows.items()]
    return [f"execution {printable(each.execution)}", *lines]


def _entries(entries: Sequence[Stored], summary: Summary, reveals: bool) -> list[str]:
    start = entries[0].entry.at_us if entries else 0
    offsets = [f"+{took_text(each.entry.at_us - start)}" for each in entries]
    left = max(map(len, offsets), default=0)
    kinds = max((len(each.entry.kind) for each in entries), default=0)
    paths = max((len(printable(each.entry.path)) for each in entries), default=0)
    indent = " " * (left + 2)
    lines: list[str] = []
    for each, offset in zip(entries, offsets, strict=True):
        entry = each.entry
        hides = summary.is_sensitive and not reveals
        cells = [offset.rjust(left), f"{entry.kind:<{kinds}}", f"{printable(entry.path):<{paths}}"]
        lines.append("  ".join([*cells, effect_text(entry, hides)]).rstrip())
        if each.is_erased or hides:
            lines.append(f"{indent}{ERASED if each.is_erased else SENSITIVE}")
        else:
            lines += limit_lines(value_lines(entry_values(entry), indent), "--format json shows all of it")
    return lines


def show_json(recorded: Recorded, reveals: bool) -> dict[str, Any]:
    """Return a run as JSON values, in the typed JSON of the journal."""
    hides = recorded.summary.is_sensitive and not reveals
    return {
        **summary_json(recorded.summary),
        "entries": [_entry_json(each, hides) for each in recorded.entries],
    }


def _entry_json(stored: Stored, hides: bool) -> dict[str, Any]:
    entry = stored.entry
    body: object = typed_json(entry.body)
    if stored.is_erased:
        body = ERASED
    elif hides:
        body = SENSITIVE
    return {
        "seq": stored.seq,
        "at": moment_json(entry.at_us),
        "kind": str(entry.kind),
        "path": entry.path,
        "effect": entry.effect,
        "class": entry.effect_class,
        "key": SENSITIVE if hides and entry.key is not None else entry.key,
        "digest": entry.digest,
        "body": body,
        "hash": stored.hash,
    }


def typed_json(value: object) -> Any:
    """Return a value in the typed JSON of the journal."""
    return json.loads(encode(value))


def document(value: object) -> str:
    """Return JSON text with non-ASCII characters escaped, for any terminal or file encoding."""
    return json.dumps(value, indent=2)
