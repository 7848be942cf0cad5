"""Explanations as JSON objects, with values in the forms of docs/spec/values.md."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from vesper.api.explanation.model import Change, Condition, Explanation, MatchedRow, Nearest, UsedParameter
from vesper.api.json_calls import fields_text, mentioned_types
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
from vesper.language.ir.nodes import Node
from vesper.values.model import show
from vesper.values.types import Type


def json_of_explanation(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as a JSON object; numbers that are no integers are `Decimal`."""
    node = explanation.node
    assert node is not None
    return {
        "node": explanation.node_id,
        "semantic_hash": explanation.semantic_hash,
        "outcome": None if explanation.outcome is None else outcome_form(node, explanation.outcome),
        "reasons": list(explanation.reasons),
        "rows": [_row(each) for each in explanation.rows],
        "conditions": [_condition(each) for each in explanation.conditions],
        "parameters": [_parameter(each) for each in explanation.parameters],
        "nearest": None if explanation.nearest is None else _nearest(node, explanation.nearest),
        "omitted": explanation.omitted,
    }


def value_form(type_: Type | None, value: object) -> Any:
    """Return the JSON form of a value of a type; of a masked one its text."""
    if type_ is not None:
        try:
            return json.loads(fields_text({"value": type_}, {"value": value}), parse_float=Decimal)["value"]
        except (TypeError, ValueError, LookupError, AttributeError):
            pass  # a part of the value is masked
    return value if isinstance(value, bool | int | str | None) else show(value)


def outcome_form(node: Node, outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Returned(value):
            return {"kind": outcome.kind, "value": _fields({each.name: each.type for each in node.outputs}, value)}
        case DeclaredError(value):
            return {"kind": outcome.kind, "value": _fields({each.name: each.type for each in node.errors}, value)}
        case ContractBroken(phase, index, values):
            text = dict(node.phases())[phase][index].text
            shown = _fields(mentioned_types(node, phase, index), values)
            return {"kind": outcome.kind, "phase": phase, "clause": text, "values": shown}
        case Failed(code, at, problems):
            line = None if at is None else node.expressions()[at].place.line
            listed = [{"path": each.path, "kind": each.kind.value} for each in problems]
            return {"kind": outcome.kind, "code": str(code), "line": line, "problems": listed}
        case Denied(capability):
            return {"kind": outcome.kind, "capability": capability}
        case LimitHit(limit):
            return {"kind": outcome.kind, "limit": limit}
        case EngineFault(message):
            return {"kind": outcome.kind, "message": message}


def _fields(types: dict[str, Type], values: Any) -> dict[str, Any]:
    return {name: value_form(types.get(name), each) for name, each in values.items()}


def _row(row: MatchedRow) -> dict[str, Any]:
    return {
        "table": row.table,
        "hit": row.hit,
        "row": row.row,
        "line": row.line,
        "text": row.text,
        "cells": dict(row.cells),
        "annotation": row.annotation,
        "reason": row.reason,
        "times": row.times,
    }


def _condition(condition: Condition) -> dict[str, Any]:
    return {
        "kind": condition.kind,
        "step": condition.step,
        "text": condition.text,
        "line": condition.line,
        "holds": condition.holds,
        "values": {name: value_form(each.type, each.value) for name, each in condition.values.items()},
        "reason": condition.reason,
        "times": condition.times,
    }


def _parameter(parameter: UsedParameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "date": parameter.date,
        "since": parameter.since,
        "value": value_form(parameter.value.type, parameter.value.value),
        "reference": parameter.reference,
        "unit": parameter.unit,
        "line": parameter.line,
    }


def _nearest(node: Node, nearest: Nearest) -> dict[str, Any]:
    if nearest.outcome is None:
        return {"found": False, "tries": nearest.tries}
    return {
        "found": True,
        "tries": nearest.tries,
        "kind": nearest.kind,
        "changes": [_change(each) for each in nearest.changes],
        "outcome": outcome_form(node, nearest.outcome),
    }


def _change(change: Change) -> dict[str, Any]:
    before, after = value_form(change.type, change.before), value_form(change.type, change.after)
    return {"input": change.path, "from": before, "to": after}
