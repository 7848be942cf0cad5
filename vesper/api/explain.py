"""Explain an engine's outcome: messages, places in the node, and problems with the inputs one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vesper.api.error_info import ErrorInfo, InputProblem
from vesper.api.input_conversion import Plain
from vesper.api.json_source import JsonSource
from vesper.api.outcome import AnyOutcome
from vesper.api.problems import describe_problems
from vesper.compiler import Compiled
from vesper.engines import outcome as ended
from vesper.language.ir.nodes import Node, Place
from vesper.values.model import show

_SENSITIVE = "<sensitive>"
_WORD = re.compile(r"[A-Za-z_]\w*")
_LIMITS = {
    "timeout_seconds": "the node says it under `performance`; what had been done by then stands in the journal",
    "memory_limit_mb": "the node says it under `performance`: inputs and answers were larger",
    "max_body": "what the node gives is larger than the journal takes; raise `max_body` of [journal], or give less",
    "cancelled": "its caller did not wait for it, and nothing had been changed yet",
}
"""Explanations of limits that are not in `vesper.Limits`."""


def outcome_of(
    compiled: Compiled, outcome: ended.Outcome, inputs: Mapping[str, Any], plain: Plain | None = None
) -> AnyOutcome:
    """Return the outcome for the caller. `inputs` are those that the engine received."""
    if isinstance(outcome, ended.Returned):
        return AnyOutcome(dict(outcome.value))
    if isinstance(outcome, ended.Failed) and plain is not None and plain.kinds:
        told = tuple(plain.told(each) for each in outcome.problems)
        outcome = ended.Failed(outcome.code, outcome.at, told)
    return AnyOutcome(None, error_info(compiled, outcome, inputs, None if plain is None else plain.source))


def error_info(
    compiled: Compiled, outcome: ended.Outcome, inputs: Mapping[str, object], source: JsonSource | None = None
) -> ErrorInfo:
    """Return the reason for missing outputs. `inputs` are those that the engine received, `source` their JSON text."""
    node = compiled.node
    match outcome:
        case ended.DeclaredError(values):
            code, text = str(values["error_code"]), values.get("message")
            message = f"{code}: {text}" if isinstance(text, str) and text else code
            return ErrorInfo(outcome.kind, code, message, dict(values), None, (), outcome)
        case ended.ContractBroken(phase, index, values):
            clause = dict(node.phases())[phase][index]
            where = _where(compiled, clause.holds.place)
            shown = {name: _SENSITIVE if _is_about(name, node) else show(value) for name, value in values.items()}
            mentioned = ", ".join(f"{name} is {value}" for name, value in shown.items())
            because = f": {mentioned}" if mentioned else ""
            message = f"{where}: {phase} `{clause.text}` does not hold{because}"
            return ErrorInfo(outcome.kind, phase, message, dict(values), where, (), outcome)
        case ended.Failed(code, None, found):
            problems = tuple(_hidden(each, node) for each in describe_problems(node, found, inputs, source))
            lines = [f"the inputs do not fit {node.node_id}:", *(f"  {each}" for each in problems)]
            return ErrorInfo(outcome.kind, str(code), "\n".join(lines), {}, None, problems, outcome)
        case ended.Failed(code, int(at), _):
            place = node.expressions()[at].place
            where = _where(compiled, place)
            message = f"{where}: {code} in `{_text_at(compiled, place)}`"
            return ErrorInfo(outcome.kind, str(code), message, {}, where, (), outcome)
        case ended.Denied(capability, why):
            message = f"denied: {node.node_id} may not use `{capability}`" + (f": {why}" if why else "")
            if "nothing in the configuration" in why:
                message += (
                    f'; in vesper.toml, write\n  [[grants]]\n  nodes = ["{node.node_id}"]\n  allow = ["{capability}"]'
                )
            return ErrorInfo(outcome.kind, capability, message, {}, None, (), outcome)
        case ended.LimitHit(limit):
            advice = _LIMITS.get(limit, "vesper.load(…, limits=vesper.Limits(…)) can give more")
            message = f"limit hit: {limit}; {advice}"
            return ErrorInfo(outcome.kind, limit, message, {}, None, (), outcome)
        case ended.EngineFault(message):
            text = f"engine fault: {message}; this is a bug in Vesper, not in your node"
            return ErrorInfo(outcome.kind, outcome.kind, text, {}, None, (), outcome)
        case ended.Returned() | ended.Failed():
            raise ValueError(f"{outcome} is no error")


def _is_about(name: str, node: Node) -> bool:
    """Return whether a sensitive input is mentioned. Messages go into logs, so its value is withheld."""
    return bool(node.grants.sensitive) and not set(_WORD.findall(name)).isdisjoint(node.grants.sensitive)


def _hidden(problem: InputProblem, node: Node) -> InputProblem:
    """Return the problem without the given value, where the input is sensitive."""
    if problem.got is None or not _is_about(problem.path, node):
        return problem
    said = f"expected {problem.expected}, got something else ({problem.kind.replace('_', ' ')})"
    return replace(problem, got=_SENSITIVE, message=said)


def _where(compiled: Compiled, place: Place) -> str:
    return f"{compiled.source.path}:{place.line}:{place.column}"


def _text_at(compiled: Compiled, place: Place) -> str:
    """Return the text of the node at this place, on one line."""
    source = compiled.source
    text = source.text[source.offset(place.line, place.column) : source.offset(place.end_line, place.end_column)]
    return " ".join(text.split())
