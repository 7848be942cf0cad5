"""Outcomes of `vesper run`: text, JSON and the exit code."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from vesper.api.explain import shown_ending
from vesper.cli.engine_names import engine_label
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.output.outcomes import json_text, outcome_json, outcome_lines
from vesper.compiler import Compiled
from vesper.engines.compare import same_outcome
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import EngineFault, LimitHit, Outcome, Returned
from vesper.journal.moments import moment_json
from vesper.values.limits import DEFAULT_FUEL

if TYPE_CHECKING:
    from vesper.api.explanation.model import Explanation
    from vesper.host.waiting import RunWaits

_TIMED_CALLS = 200


def has_timed_out(outcomes: Mapping[str, Outcome]) -> bool:
    """Whether the time limit ended a run. The moment differs between runs, so outcomes cannot be compared."""
    return any(isinstance(outcome, LimitHit) and not outcome.is_counted for outcome in outcomes.values())


def engines_agree(outcomes: Mapping[str, Outcome]) -> bool:
    first, *others = outcomes.values()
    return has_timed_out(outcomes) or all(same_outcome(first, other) for other in others)


def exit_code(outcomes: Mapping[str, Outcome]) -> int:
    if not engines_agree(outcomes) or any(isinstance(outcome, EngineFault) for outcome in outcomes.values()):
        return OUR_BUG
    return FINE if all(isinstance(outcome, Returned) for outcome in outcomes.values()) else WRONG_INPUT


def outcome_text(
    compiled: Compiled,
    outcome: Outcome,
    inputs: Mapping[str, object],
    limits: Limits,
    why: Sequence[str] = (),
    reveals: bool = False,
) -> str:
    """Render an outcome as text; a limit with its origin and how to raise it."""
    match outcome:
        case LimitHit("fuel"):
            origin = "by default" if limits.fuel == DEFAULT_FUEL else "set by --fuel"
            return (
                f"error: limit hit: fuel; {compiled.node.node_id} used its {limits.fuel:,} units ({origin})\n"
                "  a unit is a loop item, a round of a `while` loop, a called node or work on a large value;\n"
                "  raise the limit with --fuel"
            )
        case LimitHit("memory"):
            return (
                f"error: limit hit: memory; the values of {compiled.node.node_id} exceed {limits.memory:,} bytes\n"
                "  values that loops keep count, and large results; raise the limit with --memory"
            )
        case LimitHit("time"):
            return (
                f"error: limit hit: time; {compiled.node.node_id} computed for {limits.seconds:g} s, set by --seconds\n"
                "  raise the limit with --seconds, or omit it to limit the run by its fuel alone"
            )
        case _:
            return outcome_lines(compiled, outcome, inputs, why, reveals)


def outcomes_document(
    compiled: Compiled, outcomes: Mapping[str, Outcome], why: Sequence[str] = (), reveals: bool = False
) -> dict[str, Any]:
    """Return the outcomes as JSON; sensitive values in errors are masked, unless the caller `reveals` them."""
    shown = outcomes if reveals else {name: shown_ending(compiled, each) for name, each in outcomes.items()}
    document: dict[str, Any] = {
        "node": compiled.node.node_id,
        "semantic_hash": compiled.semantic_hash,
        "outcomes": {name: outcome_json(compiled.node, outcome) for name, outcome in shown.items()},
    }
    return {**document, "why": list(why)} if why else document


def print_json(
    compiled: Compiled,
    outcomes: Mapping[str, Outcome],
    trace_id: str | None = None,
    explanation: Explanation | None = None,
    reveals: bool = False,
) -> None:
    document = outcomes_document(compiled, outcomes, reveals=reveals)
    if explanation is not None:
        document["explanation"] = explanation.to_json()
    if trace_id is not None:
        document["trace_id"] = trace_id
    if len(outcomes) > 1 and not has_timed_out(outcomes):
        document["agree"] = engines_agree(outcomes)
    click.echo(json_text(document))


def print_wait(waits: RunWaits, style: str) -> None:
    """Print the wait of a run, and how the run continues."""
    if style == "json":
        due = None if waits.due_us is None else moment_json(waits.due_us)
        document = {"node": waits.node_id, "status": "waiting", "execution": waits.execution, "step": waits.path}
        click.echo(json_text({**document, "kind": waits.kind, "name": waits.name, "due": due}))
    else:
        click.echo(
            f"{waits.description}\n\nexecution {waits.execution}\n{waits.advice}; --wait stays until it has ended"
        )


def print_explanation(explanation: Explanation | None, style: str) -> None:
    """Print an explanation after the outcome; a JSON document has it as a field."""
    if explanation is not None and style == "md":
        click.echo(explanation.markdown, nl=False)
    elif explanation is not None and style == "text":
        click.echo(f"\nwhy: {explanation.text}")


def print_both(
    compiled: Compiled,
    programs: Mapping[str, Program],
    outcomes: Mapping[str, Outcome],
    inputs: dict[str, object],
    now: datetime,
    limits: Limits,
    reveals: bool = False,
) -> None:
    """Print the outcome of each engine, whether they agree, and the time of a call."""
    click.echo(f"{compiled.node.node_id}  semantic hash {compiled.semantic_hash[:12]}\n")
    for name, outcome in outcomes.items():
        click.echo(f"{engine_label(name)}:")
        click.echo(outcome_text(compiled, outcome, inputs, limits, reveals=reveals) + "\n")
    if has_timed_out(outcomes):
        click.echo("the time limit was hit, so the outcomes cannot be compared")
        return
    click.echo("the engines agree" if engines_agree(outcomes) else "THE ENGINES DISAGREE; this is a bug in Vesper")
    times = {engine_label(name): _median_seconds(each, inputs, now, limits) for name, each in programs.items()}
    text = ", ".join(f"{name} {seconds * 1e6:.1f} µs" for name, seconds in times.items())
    click.echo(f"{text} a call (median of {_TIMED_CALLS})")


def _median_seconds(program: Program, inputs: dict[str, object], now: datetime, limits: Limits) -> float:
    samples = []
    for _ in range(_TIMED_CALLS):
        start = time.perf_counter()
        program.call(inputs, now, limits)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)
