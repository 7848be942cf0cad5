"""Lines of a history as records and as texts, for `vesper migrate history` and the dashboard."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from vesper.journal.moments import number, time_text
from vesper.migration.stores.store import Line
from vesper.values.model import printable


def parse_record(line: Line) -> dict[str, Any]:
    """Return the record of a line; empty for a line that this version cannot read."""
    try:
        found = json.loads(line.text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def records(history: Sequence[Line]) -> list[dict[str, Any]]:
    """Return the records of a history; skip unreadable lines, which `migrate history` reports."""
    found = map(parse_record, history)
    return [each for each in found if isinstance(each.get("kind"), str) and type(each.get("at_us")) is int]


def record_lines(record: dict[str, Any]) -> list[str]:
    """Describe a record in one line or more; nothing for an unknown kind."""
    try:
        return [printable(each) for each in _describe(record)]
    except (KeyError, TypeError, ValueError):
        return []


def _describe(record: dict[str, Any]) -> list[str]:
    match record.get("kind"):
        case "changed":
            return [
                f"{record['before']} → {record['after']}  {record['reason']}, by {record['who']}: {record['why']}",
                _evidence(record),
            ]
        case "path_proven":
            generated = f" and {record['generated']:,} generated" if record["generated"] else ""
            return [f"path {record['path']} has enough evidence: {record['clean']:,}{generated}"]
        case "path_demoted":
            what = f"path {record['path']}" if record["path"] else "every path at this place"
            return [f"divergence {record['fingerprint']}: {what} is compared before it answers"]
        case "noise_found":
            return [f"noise {record['fingerprint']}: an engine differs from itself at {record['where']}"]
        case "latched":
            latch = record["latch"]
            return [f"latched: {latch['reason']}, by {latch['who']}: {latch['why']}"]
        case "released":
            reasons = ", ".join(each["reason"] for each in record["latches"])
            return [f"released: {reasons}, by {record['who']}: {record['why']}"]
        case "pin_set":
            pin = record["pin"]
            return [f"pinned to {pin['mode']} until {time_text(pin['until_us'])}, by {pin['who']}: {pin['why']}"]
        case "pin_ended":
            return [f"the pin to {record['pin']['mode']} is removed, by {record['who']}: {record['why']}"]
        case "closed":
            return [f"divergence {record['fingerprint']} closed, by {record['who']}: {record['why']}"]
        case "forgotten":
            seen = record["seen"]
            what = f"{number(seen['clean'], 'distinct run')} in {number(seen['compared'], 'comparison')}"
            return [f"the evidence was removed ({what}), by {record['who']}: {record['why']}"]
        case "candidate_started":
            return [f"{record['candidate']} follows {record['lead']}, by {record['who']}"]
        case "candidate_promoted" | "candidate_withdrawn" | "candidate_resumed" as kind:
            seen = record["seen"]
            what = f"{number(seen['compared'], 'run')} compared, {seen['changed']:,} changed, {seen['faults']:,} faults"
            verb = kind.removeprefix("candidate_")
            return [f"{record['candidate']} {verb} (lead {record['lead']}), by {record['who']}: {record['why']}", what]
        case "killed_all":
            return [f"all nodes stopped, by {record['who']}: {record['why']}"]
        case "resumed_all":
            return [f"all nodes resumed, by {record['who']}: {record['why']}"]
        case _:
            return []


def _evidence(record: dict[str, Any]) -> str:
    log_e = record["seen_log_e"]
    bound = math.floor(record["seen_lower_bound"] * 10**5) / 10**5
    restart = f"; restarts as attempt {record['attempt']}" if record["attempt"] != record["seen_attempt"] else ""
    return (
        f"{number(record['seen_clean'], 'distinct run')} agreed, {number(record['seen_divergences'], 'divergence')} in "
        f"{number(record['seen_compared'], 'comparison')}, {record['seen_unknown']:,} without a result; "
        + ("complete; " if record["seen_is_complete"] else "")
        + f"lower bound {bound:.5f}"
        + ("" if log_e is None else f", e-process e^{log_e:.2f}")
        + f"; attempt {record['seen_attempt']}{restart}"
    )
