"""Outcomes and values as text and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

from vesper.api.explain import broken_values, shown_ending, shown_problems
from vesper.api.problems import describe_problems
from vesper.cli.output.value_lines import value_lines
from vesper.compiler import Compiled
from vesper.engines.outcome import (
    ContractBroken,
    DeclaredError,
    Denied,
    EngineFault,
    Failed,
    LimitHit,
    Outcome,
    Returned,
)
from vesper.language.diagnostics.diagnostic import Label
from vesper.language.diagnostics.excerpt import render_excerpt
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.ir.nodes import Node, Place, record_of
from vesper.values.generated.error_meanings import ERROR_MEANINGS
from vesper.values.model import decimal_text, printable, scalar_text, show
from vesper.values.outside_names import spelled_record, to_outside
from vesper.values.period import Period
from vesper.values.types import JSON, ArrayOf, MapOf, OptionalOf, Record, SpelledRecord, Type


def span_of(source: SourceFile, place: Place) -> Span:
    return Span(source.offset(place.line, place.column), source.offset(place.end_line, place.end_column))


def outcome_lines(
    compiled: Compiled,
    outcome: Outcome,
    inputs: Mapping[str, object],
    why: Sequence[str] = (),
    reveals: bool = False,
) -> str:
    """Render an outcome on several lines; `why` has details of the Host about a failure or a refusal.

    Sensitive values in messages are masked, unless the caller `reveals` them.
    """
    node, source = compiled.node, compiled.source
    if isinstance(outcome, EngineFault) or (isinstance(outcome, Failed) and outcome.at is not None):
        outcome = outcome if reveals else shown_ending(compiled, outcome)
    match outcome:
        case Returned(value):
            return "\n".join(value_lines(value))
        case DeclaredError(value):
            return "\n".join([f"error: {node.node_id} ended with a declared error", *value_lines(value)])
        case ContractBroken(phase, index):
            clause = dict(node.phases())[phase][index]
            footer = [f"{name} is {value}" for name, value in broken_values(compiled, outcome, reveals).items()]
            label = Label(span_of(source, clause.holds.place), "does not hold")
            return render_excerpt(source, f"error: {phase} broken: `{clause.text}`", label, (), footer)
        case Failed(code, None, problems):
            lines = [f"error: {code}: the inputs do not fit {node.node_id}"]
            described = (describe_problems if reveals else shown_problems)(node, problems, inputs)
            return "\n".join([*lines, *(f"  {line}" for line in described)])
        case Failed(code, at, _):
            assert at is not None
            place = node.expressions()[at].place
            # Codes of effects and of called nodes have no registered meaning.
            footer = [*([meaning] if (meaning := ERROR_MEANINGS.get(code)) else []), *map(printable, why)]
            return render_excerpt(source, f"error: {code}", Label(span_of(source, place), "fails here"), (), footer)
        case Denied(capability):
            return "\n".join(
                [f"error: denied: `{capability}` is not granted", *(f"  {printable(each)}" for each in why)]
            )
        case LimitHit(limit):
            return f"error: limit hit: {limit}{_limit_origin(node, limit)}"
        case EngineFault(message):
            return f"engine fault: {message}"


def _limit_origin(node: Node, limit: str) -> str:
    """Return the origin of a limit; nothing for one that the caller set."""
    policy = node.grants.policy
    match limit, policy.get("total_timeout_us"), policy.get("memory_limit_mb"):
        case "timeout_seconds", int(microseconds), _:
            return f"; `performance` of {node.node_id} allows {microseconds / 1_000_000:g} s"
        case "memory_limit_mb", _, int(mebibytes):
            return f"; `performance` of {node.node_id} allows {mebibytes} MiB of inputs and answers"
        case "max_body", _, _:
            return "; its outputs exceed `max_body` under [journal]"
        case _:
            return ""


def one_line(node: Node, outcome: Outcome) -> str:
    """Render an outcome on one line."""
    match outcome:
        case Returned(value) | DeclaredError(value):
            return f"{outcome.kind} " + ", ".join(f"{name}={_plain(each)}" for name, each in value.items())
        case ContractBroken(phase, index, values):
            shown = ", ".join(f"{name}={_plain(value)}" for name, value in values.items())
            return f"{phase} {index + 1} broken: `{dict(node.phases())[phase][index].text}` ({shown})"
        case Failed(code, at, problems):
            where = "" if at is None else f" at line {node.expressions()[at].place.line}"
            return f"failed {code}{where}" + "".join(f", {each.path}: {each.kind.value}" for each in problems)
        case Denied(capability):
            return f"denied {capability}"
        case LimitHit(limit):
            return f"limit hit: {limit}"
        case EngineFault(message):
            return f"engine fault: {message}"


def _type_of_name(node: Node, name: str) -> Type | None:
    """Return the type of a name in a broken clause; outputs take precedence over inputs."""
    types: dict[str, Type] = {}
    for listed in (node.inputs, node.constants, node.outputs):
        types |= {each.name: each.type for each in listed}
    return types.get(name)


def _plain(value: object) -> str:
    return printable(value) if isinstance(value, str) else show(value)


def json_value(value: object, type_: Type | None = None) -> Any:
    """Return a value in its JSON form; a value without one (a wrong input) as text."""
    match type_, value:
        case _, None:
            return None
        case OptionalOf(inner), _:
            return json_value(value, inner)
        case ArrayOf(inner), list():
            return [json_value(item, inner) for item in value]
        case MapOf(_, inner), dict():
            return _json_map({key: json_value(found, inner) for key, found in value.items()})
        case Record() as record, dict():
            other = JSON if isinstance(record, SpelledRecord) else None
            return {key: json_value(found, record.field(key) or other) for key, found in value.items()}
        case _ if type_ == JSON:
            return value
        case _:
            return _untyped_json(value)


def _json_map(entries: dict[Any, Any]) -> Any:
    """Return entries as an object if their keys are texts, otherwise as pairs.

    The values are in their JSON form already.
    """
    if all(isinstance(key, str) for key in entries):
        return entries
    return [[_untyped_json(key), found] for key, found in entries.items()]


def _untyped_json(value: object) -> Any:
    match value:
        case Decimal() if value.is_finite():
            return decimal_text(value)
        case float() if math.isfinite(value):
            return value
        case float() | bytes() | date() | timedelta() | time() | Period():
            return scalar_text(value)
        case None | bool() | int() | str():
            return value
        case list():
            return [_untyped_json(item) for item in value]
        case frozenset() | set():
            return sorted((_untyped_json(item) for item in value), key=repr)
        case dict():
            return _json_map({key: _untyped_json(found) for key, found in value.items()})
        case _:
            return repr(value)


def json_text(value: Any, indent: str = "", is_ascii: bool = True) -> str:
    """Return JSON text with an indent of two; a decimal is a number with all its digits."""
    inner = indent + "  "
    match value:
        case Decimal():
            return decimal_text(value)
        case dict() if value:
            entries = [
                f"{inner}{json.dumps(key, ensure_ascii=is_ascii)}: {json_text(each, inner, is_ascii)}"
                for key, each in value.items()
            ]
            return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
        case list() if value:
            items = [f"{inner}{json_text(each, inner, is_ascii)}" for each in value]
            return "[\n" + ",\n".join(items) + f"\n{indent}]"
        case _:
            return json.dumps(value, ensure_ascii=is_ascii)


def outcome_json(node: Node, outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Returned(value) | DeclaredError(value):
            whole = record_of(node.outputs if isinstance(outcome, Returned) else node.errors)
            return {"kind": outcome.kind, "value": json_value(to_outside(whole, dict(value)), spelled_record(whole))}
        case ContractBroken(phase, index, values):
            clause = dict(node.phases())[phase][index]
            return {
                "kind": outcome.kind,
                "phase": phase,
                "index": index,
                "clause": clause.text,
                "line": clause.holds.place.line,
                "values": {name: json_value(each, _type_of_name(node, name)) for name, each in values.items()},
            }
        case Failed(code, at, problems):
            line = None if at is None else node.expressions()[at].place.line
            listed = [{"path": each.path, "kind": each.kind.value} for each in problems]
            return {"kind": outcome.kind, "code": code, "line": line, "problems": listed}
        case Denied(capability):
            return {"kind": outcome.kind, "capability": capability}
        case LimitHit(limit):
            return {"kind": outcome.kind, "limit": limit}
        case EngineFault(message):
            return {"kind": outcome.kind, "message": message}
