"""Text and JSON of `vesper status`."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vesper.cli.output.value_lines import pad
from vesper.cli.status.rollback import rollback_json
from vesper.journal.moments import moment_json, number, time_text
from vesper.language.diagnostics.excerpt import display_width
from vesper.migration.compare.divergence import Divergence
from vesper.migration.control.modes import LADDER, PATH_THRESHOLD, Engine, Mode
from vesper.migration.control.state import NodeState
from vesper.migration.statistics.wilson import lower_bound
from vesper.migration.stores.configured import short_epoch
from vesper.migration.stores.history_text import records
from vesper.migration.stores.overview import (
    DAY_HOURS,
    NodeOverview,
    Overview,
    PathOverview,
    confidence_text,
    fleet,
    missing_texts,
    running_mode,
    statistics,
)
from vesper.migration.stores.rollback import rollback_of
from vesper.migration.stores.status_text import (
    ago_text,
    facts_of,
    held_text,
    needed_text,
    path_name,
    path_need,
    shares_text,
)
from vesper.migration.stores.store import Line
from vesper.values.model import printable

_MIN_LAST_COLUMN = 30
"""Columns that the last cell needs; with fewer, each node is a block of lines."""
_MAX_CHANGES = 5
_MAX_PATHS = 20
_MAX_DIVERGENCES = 10
_HEADING = ("node", "mode", "confidence", "n", "open", "held", "needed for promotion")


@dataclass(frozen=True, slots=True)
class Detail:
    """Details of one node."""

    node: NodeOverview
    state: NodeState
    highest: Mode | None
    paths: Sequence[PathOverview]
    path_words: Mapping[str, Sequence[str]]
    """Descriptions of the paths, by name."""
    source_note: str | None
    """Why paths have no conditions, if so."""
    divergences: Sequence[Divergence]
    history: Sequence[Line]


# -- all nodes ------------------------------------------------------------------------------------


def overview_lines(overview: Overview, highest: Mapping[str, Mode | None], now_us: int, width: int) -> list[str]:
    table, below = _table(overview, highest, now_us, width), _totals(overview, highest, now_us)
    return [*head_lines(overview, now_us, width), "", *table, "", *_wrap(below, width)]


def _wrap(lines: Sequence[str], width: int) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, max(30, width), subsequent_indent="  ")]


def head_lines(overview: Overview, now_us: int, width: int) -> list[str]:
    """Describe the store, with warnings that concern all nodes."""
    return _wrap(_store_lines(overview, now_us), width)


def _store_lines(overview: Overview, now_us: int) -> list[str]:
    written = "never written" if overview.written_us is None else f"written {ago_text(overview.written_us, now_us)}"
    lines = [f"store {printable(overview.store)}, {written}"]
    lines += [f"warning: {printable(each)}" for each in overview.warnings]
    switch = overview.killed
    if switch is not None:
        lines.append(
            f"STOPPED: every node runs on Python only, since {time_text(switch.at_us)}, by {printable(switch.who)}: "
            f"{printable(switch.why)}"
        )
        lines.append("  `vesper migrate resume --all --why TEXT` returns them to the modes below")
    return lines


def _table(overview: Overview, highest: Mapping[str, Mode | None], now_us: int, width: int) -> list[str]:
    rows = [_row(each, highest.get(each.key.node), now_us) for each in overview.nodes]
    names = Counter(each.key.node for each in overview.nodes)
    for row, each in zip(rows, overview.nodes, strict=True):
        if names[each.key.node] > 1:
            row[0] += f" ({short_epoch(each.key.epoch)})"
    columns: list[Sequence[str]] = [_HEADING, *rows]
    widths = [max(display_width(row[at]) for row in columns) for at in range(len(_HEADING))]
    left = sum(widths[:-1]) + 2 * (len(_HEADING) - 1)
    if width - left < min(_MIN_LAST_COLUMN, widths[-1]):
        return [line for row in rows for line in _block(row, width)]
    lines = []
    for cells in columns:
        shown = [pad(cell, widths[at], is_number=at in (3, 4)) for at, cell in enumerate(cells[:-1])]
        parts = textwrap.wrap(cells[-1], width - left) or [""]
        lines.append("  ".join([*shown, parts[0]]).rstrip())
        lines += [" " * left + part for part in parts[1:]]
    return lines


def _row(each: NodeOverview, highest: Mode | None, now_us: int) -> list[str]:
    if each.state is None:
        return [printable(each.key.node), "?", "", "", "", "", printable(each.problem or "")]
    state = each.state
    return [
        printable(state.node),
        running_mode(state, highest).value,
        confidence_text(state),
        f"{state.clean:,}",
        f"{len(state.open):,}",
        held_text(state, highest, now_us),
        needed_text(state, highest),
    ]


def _block(row: Sequence[str], width: int) -> list[str]:
    """Render a node as a block of lines, for a narrow terminal."""
    facts = [f"{name} {text}" for name, text in zip(_HEADING[2:6], row[2:6], strict=True) if text]
    lines = [f"{row[0]}  {row[1]}"]
    for text in ("  ".join(facts), row[6]):
        lines += textwrap.wrap(text, max(20, width), initial_indent="  ", subsequent_indent="    ")
    return lines


def _totals(overview: Overview, highest: Mapping[str, Mode | None], now_us: int) -> list[str]:
    found = fleet(overview, highest, now_us)
    listed = [f"{found.nodes[mode]:,} {mode.value}" for mode in LADDER if found.nodes[mode]]
    listed += [f"{found.unreadable:,} unreadable"] if found.unreadable else []
    nodes = {each.key.node for each in overview.nodes}
    epochs = f" in {len(overview.nodes):,} epochs" if len(overview.nodes) > len(nodes) else ""
    lines = [f"{number(len(nodes), 'node')}{epochs}: {', '.join(listed)}"]
    lines.append(f"traffic of the last {DAY_HOURS} hours: {shares_text(found.requests, found.engines)}")
    if overview.others:
        lines.append(f"{number(len(overview.others), 'older epoch')} not shown; --all-epochs shows them")
    return lines


# -- one node -------------------------------------------------------------------------------------


def detail_lines(overview: Overview, detail: Detail, now_us: int, width: int) -> list[str]:
    lines = [
        *head_lines(overview, now_us, width),
        "",
        f"{printable(detail.state.node)}, epoch {short_epoch(detail.state.epoch)}",
    ]
    rows = facts_of(detail.node, detail.state, detail.highest, detail.history, now_us)
    left = max(display_width(name) for name, _ in rows) + 4
    for name, text in rows:
        parts = textwrap.wrap(text, max(20, width - left)) or [""]
        lines.append(f"  {pad(name, left - 4)}  {parts[0]}")
        lines += [" " * left + part for part in parts[1:]]
    return [*lines, *_path_lines(detail, width), *_divergence_lines(detail), *_change_lines(detail, width)]


def _path_lines(detail: Detail, width: int) -> list[str]:
    if not detail.paths:
        return ["", "no path has evidence yet"]
    lines = ["", f"{number(len(detail.paths), 'path')}, most evidence first"]
    if detail.source_note is not None:
        lines.append(f"  {detail.source_note}")
    for each in detail.paths[:_MAX_PATHS]:
        generated = f" and {each.seen.generated:,} generated" if each.seen.generated else ""
        lines.append(f"  {each.letter}  {each.seen.clean:,}{generated}: {path_need(each)}")
        words = "; ".join(detail.path_words.get(each.name, ())) or path_name(each.name)
        lines += textwrap.wrap(words, max(30, width), initial_indent="     ", subsequent_indent="     ")
    if len(detail.paths) > _MAX_PATHS:
        lines.append(f"  and {len(detail.paths) - _MAX_PATHS:,} more; --format json shows all")
    return lines


def _divergence_lines(detail: Detail) -> list[str]:
    if not detail.state.open:
        return []
    lines = ["", f"{number(len(detail.state.open), 'open divergence')}"]
    by_name = {each.name: each.letter for each in detail.paths}
    for each in detail.divergences[:_MAX_DIVERGENCES]:
        times = "once" if each.count == 1 else f"{each.count:,} times"
        path = f", on path {by_name[each.path]}" if each.path in by_name else ""
        lines.append(
            f"  {printable(each.fingerprint)}  {printable(each.where)} ({each.kind}), {times}, "
            f"last {time_text(each.last_us)}{path}"
        )
    left = len(detail.state.open) - min(len(detail.divergences), _MAX_DIVERGENCES)
    lines += [f"  and {left:,} more"] if left else []
    return [*lines, "  `vesper divergences show FINGERPRINT` shows one"]


def _change_lines(detail: Detail, width: int) -> list[str]:
    found = [each for each in records(detail.history) if each["kind"] == "changed"]
    if not found:
        return ["", "no change of mode yet"]
    lines = ["", "last changes (`vesper migrate history` shows all)"]
    for each in reversed(found[-_MAX_CHANGES:]):
        text = f"{each['before']} → {each['after']}, by {each['who']}: {each['why']}"
        wrapped = textwrap.wrap(printable(text), max(30, width - 24)) or [""]
        lines.append(f"  {time_text(each['at_us'])}  {wrapped[0]}")
        lines += [" " * 24 + part for part in wrapped[1:]]
    return lines


# -- JSON ---------------------------------------------------------------------------------


def overview_json(overview: Overview, highest: Mapping[str, Mode | None], now_us: int) -> dict[str, Any]:
    found = fleet(overview, highest, now_us)
    return {
        **_store_json(overview),
        "nodes": [_node_json(each, highest.get(each.key.node), now_us) for each in overview.nodes],
        "totals": {
            "nodes": {mode.value: found.nodes[mode] for mode in LADDER},
            "unreadable": found.unreadable,
            "requests": found.requests.total(),
            "requests_by_mode": {mode.value: found.requests[mode] for mode in LADDER},
            "requests_by_engine": {engine.value: found.engines[engine] for engine in Engine},
            "hours": DAY_HOURS,
            "older_epochs": len(overview.others),
        },
    }


def detail_json(overview: Overview, detail: Detail, now_us: int) -> dict[str, Any]:
    return {
        **_store_json(overview),
        **_node_json(detail.node, detail.highest, now_us),
        "paths": [_path_json(each, detail.path_words.get(each.name)) for each in detail.paths],
        "path_threshold": float(PATH_THRESHOLD),
        "source_note": detail.source_note,
        "open_divergences": [
            {
                "fingerprint": each.fingerprint,
                "kind": each.kind,
                "where": each.where,
                "path": each.path,
                "count": each.count,
                "first": moment_json(each.first_us),
                "last": moment_json(each.last_us),
            }
            for each in detail.divergences
        ],
        "rollback": rollback_json(rollback_of(detail.state, detail.node.traffic, now_us, DAY_HOURS)),
        "changes": [each for each in records(detail.history) if each["kind"] == "changed"],
        "traffic": [
            {"hour": moment_json(hour * 3600 * 10**6), "served": dict(counts)}
            for hour, counts in sorted(detail.node.traffic.hours.items())
        ],
    }


def _store_json(overview: Overview) -> dict[str, Any]:
    switch = overview.killed
    return {
        "store": overview.store,
        "warnings": list(overview.warnings),
        "written": None if overview.written_us is None else moment_json(overview.written_us),
        "killed": None if switch is None else {"who": switch.who, "why": switch.why, "at": moment_json(switch.at_us)},
    }


def _node_json(each: NodeOverview, highest: Mode | None, now_us: int) -> dict[str, Any]:
    written = each.traffic.written_us
    shown: dict[str, Any] = {
        "node": each.key.node,
        "epoch": each.key.epoch,
        "problem": each.problem,
        "node_written": None if written is None else moment_json(written),
        "requests": dict(each.traffic.since(now_us, DAY_HOURS)),
    }
    state = each.state
    if state is None:
        return shown
    found = statistics(state)
    pin = state.pin
    return shown | {
        "mode": running_mode(state, highest).value,
        "mode_of_evidence": state.mode.value,
        "highest_allowed": None if highest is None else highest.value,
        "confidence": lower_bound(state.clean + state.divergences, state.divergences),
        "is_complete": state.is_complete,
        "clean": state.clean,
        "divergences": state.divergences,
        "compared": state.compared,
        "unknown": state.unknown,
        "attempt": state.attempt,
        "open": len(state.open),
        "missing": missing_texts(state, highest),
        "next": None if found is None else {**asdict(found), "mode": found.mode.value},
        "pin": None
        if pin is None
        else {"mode": pin.mode.value, "until": moment_json(pin.until_us), "who": pin.who, "why": pin.why},
        "latches": [
            {"reason": latch.reason.value, "who": latch.who, "why": latch.why, "at": moment_json(latch.at_us)}
            for latch in state.latches
        ],
        "lost_runs": list(state.lost),
        "noise": dict(state.noise),
    }


def _path_json(each: PathOverview, words: Sequence[str] | None) -> dict[str, Any]:
    return {
        "letter": each.letter,
        "path": each.name,
        "words": None if words is None else list(words),
        "clean": each.seen.clean,
        "generated": each.seen.generated,
        "attempt": each.seen.attempt,
        "open": each.seen.open,
        "is_proven": each.is_proven,
        "lacks": each.lacks,
    }
