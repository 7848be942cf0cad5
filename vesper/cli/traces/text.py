"""Traces as text that fits the terminal, and as complete JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from vesper.api.explanation.derive import explain_trace
from vesper.cli.journal.text import short_ids, table, typed_json
from vesper.cli.output.outcomes import json_text
from vesper.cli.output.terminal import columns
from vesper.cli.output.value_lines import pad
from vesper.host.outcomes import outcome_record
from vesper.journal.entry_text import words
from vesper.journal.moments import moment_json, time_text, took_text
from vesper.language.diagnostics.excerpt import display_width
from vesper.trace.difference import Difference, outcome_text
from vesper.trace.masking import masked_trace
from vesper.trace.model import Exchange, Trace
from vesper.trace.store import TraceSummary
from vesper.trace.timeline import SIGNS, TimelineStep, effect_text, timeline
from vesper.values.model import printable, show


def cut(text: str, width: int) -> str:
    """Shorten a text to a width, with an ellipsis."""
    if display_width(text) <= width:
        return text
    kept = text[: max(0, width - 1)]
    while display_width(kept) > width - 1:
        kept = kept[:-1]
    return f"{kept}…"


# -- lists ----------------------------------------------------------------------------------------


def list_lines(found: Sequence[TraceSummary]) -> list[str]:
    shorts = short_ids([each.trace_id for each in found])
    rows = [["trace", "node", "outcome", "took", "started", "engine"]]
    for each in found:
        outcome = words(each.outcome or "unfinished") + (f": {printable(each.code)}" if each.code else "")
        marks = " !" if each.divergence else ""
        rows.append(
            [
                shorts[each.trace_id],
                printable(each.node_id),
                outcome + marks,
                "" if each.duration_us is None else took_text(each.duration_us),
                time_text(each.started_us),
                ",".join(each.engines),
            ]
        )
    lines = table(rows)
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return lines  # a file or a pipe gets complete lines
    width = columns()
    if max(map(display_width, lines)) > width:
        # A narrow terminal omits the engine and the year; `vesper traces show` has both.
        lines = table([[*row[:4], row[4] if number == 0 else row[4][5:-1]] for number, row in enumerate(rows)])
    return [cut(line, width) for line in lines]


def summary_json(each: TraceSummary) -> dict[str, Any]:
    return {
        "trace_id": each.trace_id,
        "node": each.node_id,
        "semantic_hash": each.semantic_hash,
        "engines": list(each.engines),
        "started": moment_json(each.started_us),
        "took_us": each.duration_us,
        "outcome": each.outcome,
        "code": each.code,
        "divergence": each.divergence,
        "origin": each.origin,
        "is_sensitive": each.is_sensitive,
        "is_stored": each.is_stored,
    }


# -- one trace ------------------------------------------------------------------------------------


def show_lines(trace: Trace, reveals: bool) -> list[str]:
    """Render a trace: inputs, steps, contracts and outcome."""
    trace = trace if reveals else masked_trace(trace)
    width = columns()
    lines = [f"trace {printable(trace.trace_id)}"]
    rows: dict[str, str] = {
        "node": f"{trace.node_id}, as of {trace.semantic_hash[:12]}",
        "outcome": outcome_text(trace.outcome),
        "started": time_text(trace.started_us, 3) + (
            "" if trace.duration_us is None else f", took {took_text(trace.duration_us)}"
        ) + f", on {', '.join(trace.engines)}",
        "caller": ", ".join(f"{name} {text}" for name, text in trace.caller.items()),
        "inputs": ", ".join(f"{name} {show(each)}" for name, each in trace.inputs.items()),
        "contracts": _contracts(trace),
    }  # fmt: skip
    rows["reasons"] = ", ".join(explain_trace(trace).reasons)
    if trace.waits_at is not None and trace.outcome is None:
        rows["waits at"] = trace.waits_at
    if trace.divergence is not None:
        rows["divergence"] = trace.divergence
    if trace.origin is not None:
        rows["made from"] = f"{trace.origin.trace_id}: {'; '.join(trace.origin.changes) or 'replayed'}"
    if trace.is_sensitive and not reveals:
        rows["sensitive"] = "sensitive values are masked; --reveal shows them"
    name_width = max(map(len, rows))
    lines += [cut(f"  {name:<{name_width}}  {printable(text)}", width) for name, text in rows.items() if text]
    return [*lines, "", *step_lines(trace, width)]


def _contracts(trace: Trace) -> str:
    broken = [each for each in trace.contracts if not each.holds]
    held = len(trace.contracts) - len(broken)
    parts = [f"{held} held"] if held or not broken else []
    parts += [f"{each.phase} {each.index + 1} broken: {each.text}" for each in broken]
    return "; ".join(parts) if trace.contracts else "none were evaluated"


def step_lines(trace: Trace, width: int) -> list[str]:
    steps = timeline(trace)
    if not steps:
        return ["  no steps"]
    names = max(display_width(each.path) for each in steps)
    names = min(names, width // 3)
    lines = []
    for each in steps:
        left = f"  {each.number:>{len(str(len(steps)))}} {SIGNS[each.status]} {pad(cut(each.path, names), names)}  "
        lines.append(cut(left + printable(_step_text(trace, each)), width).rstrip())
    return lines


def _step_text(trace: Trace, step: TimelineStep) -> str:
    """Render the request of a step and its result."""
    exchange = None if step.exchange is None else trace.exchanges[step.exchange]
    prefix = "" if exchange is None else f"{effect_text(exchange)}  "
    if exchange is not None and exchange.took_us is not None:
        prefix += f"{took_text(exchange.took_us)}  "
    match step.status:
        case "failed":
            tries = 1 if exchange is None else exchange.attempts
            return f"{prefix}{step.code}" + (f" after {tries} attempts" if tries > 1 else "")
        case "skipped":
            return f"{prefix}skipped"
        case _:
            return prefix + show(step.value)


def show_json(trace: Trace, reveals: bool) -> dict[str, Any]:
    """Return a trace as JSON values, without the text and IR of its node; values in typed JSON."""
    trace = trace if reveals else masked_trace(trace)
    outcome = None if trace.outcome is None else outcome_record(trace.outcome)
    explanation = explain_trace(trace)
    return {
        "trace_id": trace.trace_id,
        "node": trace.node_id,
        "semantic_hash": trace.semantic_hash,
        "engines": list(trace.engines),
        "started": moment_json(trace.started_us),
        "took_us": trace.duration_us,
        "now": None if trace.now is None else typed_json(trace.now),
        "caller": dict(trace.caller),
        "inputs": typed_json(dict(trace.inputs)),
        "outcome": typed_json(outcome),
        "waits_at": trace.waits_at,
        "divergence": trace.divergence,
        "origin": _origin_json(trace),
        "is_sensitive": trace.is_sensitive,
        "steps": [_step_json(each) for each in timeline(trace)],
        "exchanges": [_exchange_json(each) for each in trace.exchanges],
        "marks": [[each.index, typed_json(each.value), each.step, str(each.kind)] for each in trace.marks],
        "contracts": [
            {"phase": each.phase, "index": each.index, "text": each.text, "holds": each.holds}
            for each in trace.contracts
        ],
        "transitions": [
            {
                "path": each.path,
                "machine": each.machine,
                "entity": typed_json(each.entity),
                "before": each.before,
                "to": each.to,
            }
            for each in trace.transitions
        ],
        "explanation": json.loads(json_text(explanation.to_json())),
    }


def _origin_json(trace: Trace) -> dict[str, Any] | None:
    if trace.origin is None:
        return None
    return {
        "trace_id": trace.origin.trace_id,
        "from_step": trace.origin.from_step,
        "changes": list(trace.origin.changes),
    }


def _step_json(step: TimelineStep) -> dict[str, Any]:
    return {
        "number": step.number,
        "path": step.path,
        "title": step.title,
        "status": step.status,
        "code": step.code,
        "value": typed_json(step.value),
        "exchange": step.exchange,
    }


def _exchange_json(exchange: Exchange) -> dict[str, Any]:
    return {
        "path": exchange.path,
        "effect": exchange.effect,
        "class": exchange.effect_class,
        "fixed": dict(exchange.fixed),
        "arguments": typed_json(dict(exchange.arguments)),
        "key": exchange.key,
        "value": typed_json(exchange.value),
        "failure": exchange.failure,
        "message": exchange.message,
        "attempts": exchange.attempts,
        "decisions": [typed_json(dict(each.said)) for each in exchange.decisions],
        "took_us": exchange.took_us,
        "origin": exchange.origin,
    }


def difference_lines(found: Sequence[Difference], names: tuple[str, str]) -> list[str]:
    """Render each difference with both sides, one below the other."""
    label = max(map(len, names))
    lines: list[str] = []
    for each in found:
        lines.append(printable(each.where))
        for name, text in zip(names, (each.left, each.right), strict=True):
            lines.append(cut(f"  {name:<{label}}  {printable(text)}", columns()))
    return lines
