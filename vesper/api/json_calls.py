"""`node.run_json`: JSON text to the outcome as canonical JSON (docs/spec/values.md).

The direct engine reads and writes such texts itself, and `run_json` is then its own function, which calls
`explain_json` for an outcome without outputs. Other nodes are called with objects, and the outcome is written here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vesper.api.call_metrics import count_outcome
from vesper.api.error_info import InputProblem
from vesper.api.explain import explain
from vesper.api.input_conversion import Plain, inputs_of_json
from vesper.api.spelled_declarations import spelled_declarations
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
from vesper.language.ir import nodes as ir
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import accept_inputs
from vesper.values.json_forms import has_names, input_of_json
from vesper.values.json_value import canonical_text, json_of, json_string
from vesper.values.model import in_order, scalar_text
from vesper.values.model import plain as plain_value
from vesper.values.outside_names import spelled_type, to_inside, to_outside
from vesper.values.problem import Problem, ProblemKind
from vesper.values.strict_json import forms_of_json
from vesper.values.types import FLOAT, JSON, ArrayOf, MapOf, OptionalOf, Record, SetOf, SpelledRecord, Type, mentions

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.api.observed.answer_stream import AnswerStream

_MAX_DESCRIBED = 100
"""Problems that are described; further ones have kind and path. A text may have a million of them."""
NEVER_BEGAN = b'{"at":null,"code":"bad_input"'
"""The start of the answer to refused inputs, and of no other answer."""


def json_entry(node: Node) -> Callable[..., bytes]:
    """Return the function behind `node.run_json`."""
    if node._entries is not None and node._entries.spans is not None:
        return node._entries.spans.json_entry(_plain_entry(node))
    return _plain_entry(node)


def _plain_entry(node: Node) -> Callable[..., bytes]:
    entries = node._entries
    own = None if entries is None else entries.json
    if entries is None or own is None:
        return _object_entry(node)
    if entries.sampling is not None:
        from vesper.api.observed.batch_trace_sampling import sample_json

        own = sample_json(own, entries.sampling)
    return _entry_with_start(own, node) if node._takes_now else own


def _entry_with_start(run: Callable[..., bytes], node: Node) -> Callable[..., bytes]:
    def run_json(text: bytes, /, *, now: datetime | str | None = None) -> bytes:
        return run(text, node._start(now))

    return run_json


def _object_entry(node: Node) -> Callable[..., bytes]:
    """Return an entry that converts to objects: for the python engine, limits, effects and routed nodes."""

    def run_json(text: bytes, /, *, now: datetime | str | None = None) -> bytes:
        if not isinstance(text, bytes):
            raise TypeError(f"{node.id}.run_json takes JSON text as bytes, not {type(text).__name__}")
        start = node._shared_start(now)
        compiled = node._compiled
        plain = inputs_of_json(node._compiled.node.inputs, text)
        if plain.refused:
            refusal = Failed(ErrorCode.BAD_INPUT, None, plain.refused)
            return outcome_json(node._compiled, refusal, plain).encode()
        if node._entries is None:
            host = node.host
            ran = host.run(node._prepare(host), plain.inputs, start or node._start(None), node._limits)
            outcome, compiled = ran.outcome, ran.definition or compiled
        else:
            outcome = node._entries.engine_call(plain.inputs, start, node._limits)
            count_outcome(node._program, node.id, outcome)
        return _outcome_bytes(compiled, outcome, plain)

    return run_json


def _outcome_bytes(compiled: Compiled, outcome: Outcome, plain: Plain, has_reason: bool = False) -> bytes:
    if isinstance(outcome, Failed):
        why = outcome.why if has_reason else ""
        outcome = Failed(outcome.code, outcome.at, tuple(map(plain.caller_problem, outcome.problems)), why)
    return outcome_json(compiled, outcome, plain).encode()


def stream_json(node: Node, text: bytes, has_reason: bool = False) -> AnswerStream[bytes]:
    """Return the events of a run of JSON text, whose outcome is that of `run_json`. For nodes with effects.

    With `has_reason` the message of a failed request is part of the outcome, for callers who see the settings.
    """
    from vesper.api.observed.answer_stream import AnswerStream

    host = node.host
    plain = inputs_of_json(node._compiled.node.inputs, text)
    if plain.refused:
        refusal = Failed(ErrorCode.BAD_INPUT, None, plain.refused)
        return AnswerStream.refused(host, outcome_json(node._compiled, refusal, plain).encode())
    prepared, start = node._prepare(host), node._start(None)
    return AnswerStream(
        host,
        lambda on_begun: host.run(prepared, plain.inputs, start, node._limits, on_begun),
        lambda on_begun: host.arun(prepared, plain.inputs, start, node._limits, on_begun),
        lambda ran: _outcome_bytes(ran.definition or node._compiled, ran.outcome, plain, has_reason),
    )


def explain_json(compiled: Compiled, answer: bytes, text: bytes) -> bytes:
    """Add messages and places to an outcome without outputs that an engine wrote.

    `text` is the JSON text of the inputs.
    """
    node = compiled.node
    outcome = outcome_of_json(node, answer)
    plain = Plain({})
    if isinstance(outcome, Failed) and outcome.at is None:
        plain = inputs_of_json(node.inputs, text)
    return outcome_json(compiled, outcome, plain).encode()


# -- outcomes -------------------------------------------------------------------------------------


def outcome_json(compiled: Compiled, outcome: Outcome, plain: Plain) -> str:
    """Return the outcome of a node as canonical JSON. `plain` are the inputs, which messages about them show."""
    node = compiled.node
    if isinstance(outcome, Returned):
        return object_text([("kind", json_string(outcome.kind)), ("value", declared_text(node.outputs, outcome.value))])
    undescribed: tuple[Problem, ...] = ()
    described: Outcome = _canonical_outcome(node, outcome)
    if isinstance(outcome, Failed):
        undescribed = outcome.problems[_MAX_DESCRIBED:]
        described = replace(outcome, problems=outcome.problems[:_MAX_DESCRIBED])
    explained = explain(compiled, described, plain.inputs, plain.source)
    message = f"{explained.message}\n  and {len(undescribed):,} more" if undescribed else explained.message
    members = [("kind", explained.kind), ("code", explained.code), ("message", message)]
    entries = [(name, json_string(text)) for name, text in members]
    if isinstance(outcome, Failed | ContractBroken):
        entries.append(("where", _text_or_null(explained.where)))
    match outcome:
        case DeclaredError(value):
            entries.append(("value", declared_text(node.errors, value)))
        case Failed(_, at):
            problems = ",".join([*map(_problem, explained.problems), *map(_bare_problem, undescribed)])
            entries += [("at", "null" if at is None else str(at)), ("problems", f"[{problems}]")]
        case ContractBroken(phase, index, values):
            shown = fields_text(mentioned_types(node, phase, index), values)
            entries += [("index", str(index)), ("phase", json_string(phase)), ("values", shown)]
        case Denied(capability):
            entries.append(("capability", json_string(capability)))
        case LimitHit(limit):
            entries.append(("limit", json_string(limit)))
        case EngineFault():
            pass
    return object_text(entries)


def _canonical_outcome(node: ir.Node, outcome: Outcome) -> Outcome:
    """Return an outcome in which json values have the canonical numbers of its JSON text."""
    match outcome:
        case DeclaredError(value):
            types = {each.name: each.type for each in node.errors}
            return DeclaredError(_canonical_values(types, value))
        case ContractBroken(phase, index, values):
            return replace(outcome, values=_canonical_values(mentioned_types(node, phase, index), values))
        case _:
            return outcome


def _canonical_values(types: Mapping[str, Type], values: Mapping[str, Any]) -> Mapping[str, Any]:
    if not any(mentions(types[name], JSON) for name in values):
        return values
    return _values({name: types[name] for name in values}, forms_of_json(fields_text(types, values)))


def _problem(problem: InputProblem) -> str:
    line, column = ("null" if each is None else str(each) for each in (problem.line, problem.column))
    texts = {"expected": problem.expected, "kind": problem.kind, "message": problem.message, "path": problem.path}
    entries = [(name, json_string(text)) for name, text in texts.items()]
    return object_text([*entries, ("got", _text_or_null(problem.got)), ("line", line), ("column", column)])


def _bare_problem(problem: Problem) -> str:
    return f'{{"kind":"{problem.kind.value}","path":{json_string(problem.path)}}}'


def _text_or_null(text: str | None) -> str:
    return "null" if text is None else json_string(text)


def mentioned_types(node: ir.Node, phase: str, index: int) -> dict[str, Type]:
    clause = dict(node.phases())[phase][index]
    return {each.name.lstrip("_"): each.type for each in ir.mentioned_refs(clause)}


def outcome_of_json(node: ir.Node, answer: bytes) -> Outcome:
    """Return the outcome that an engine wrote as JSON; it has no outputs."""
    found: dict[str, Any] = forms_of_json(answer.decode())
    match found["kind"]:
        case "declared_error":
            return DeclaredError(declared_values(node.errors, found["value"]))
        case "contract_broken":
            phase, index = found["phase"], found["index"]
            return ContractBroken(phase, index, _values(mentioned_types(node, phase, index), found["values"]))
        case "failed":
            code = found["code"]
            problems = tuple(Problem(each["path"], ProblemKind(each["kind"])) for each in found["problems"])
            return Failed(ErrorCode(code) if code in _CODES else code, found["at"], problems)
        case "denied":
            return Denied(found["capability"])
        case "limit_hit":
            return LimitHit(found["limit"])
        case _:
            return EngineFault(found["message"])


_CODES = frozenset(code.value for code in ErrorCode)


def _values(types: Mapping[str, Type], forms: Mapping[str, Any]) -> dict[str, Any]:
    """Convert JSON forms to values as callers get them, in the order of the types."""
    given = {name: input_of_json(type_, forms[name]) for name, type_ in types.items() if forms[name] is not None}
    values, _ = accept_inputs([(name, types[name], None) for name in given], given)
    return {name: plain_value(values[name]) if name in values else None for name in types}


def declared_values(declared: tuple[ir.Output, ...], forms: Mapping[str, Any]) -> dict[str, Any]:
    """Convert JSON forms to the values of outputs or error fields, by inside names."""
    whole, spelled = spelled_declarations(declared)
    if spelled is whole:
        return _values(dict(whole.fields), forms)
    values = _values({name: type_ for name, type_ in spelled.fields if name in forms}, forms)
    found: dict[str, Any] = to_inside(whole, values)
    return found


def declared_text(declared: tuple[ir.Output, ...], values: Mapping[str, Any]) -> str:
    """Return outputs or error fields as a JSON object, by their outside names."""
    whole, spelled = spelled_declarations(declared)
    return fields_text(dict(spelled.fields), values if spelled is whole else to_outside(whole, values))


def json_value(type_: Type, value: Any) -> Any:
    """Return a value as callers pass it in JSON, by outside names."""
    return json.loads(fields_text({"value": spelled_type(type_)}, {"value": to_outside(type_, plain_value(value))}))[
        "value"
    ]


def fields_text(types: Mapping[str, Type], values: Mapping[str, Any]) -> str:
    """Return the fields as a JSON object. In an invariant of a node that ends with an error, outputs are null."""
    entries = ((name, "null" if each is None else _text(types[name], each)) for name, each in values.items())
    return object_text(entries)


def object_text(entries: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json_string(name)}:{text}" for name, text in sorted(entries)) + "}"


def _text(type_: Type, value: Any) -> str:
    """Return a value of this type, as callers get it, as JSON."""
    match type_:
        case OptionalOf(inner):
            return "null" if value is None else _text(inner, value)
        case ArrayOf(element):
            return f"[{','.join([_text(element, each) for each in value])}]"
        case SetOf(element):
            return f"[{','.join([_text(element, each) for each in in_order(element, value)])}]"
        case MapOf(key, of) if has_names(key):
            return object_text((name, _text(of, each)) for name, each in value.items())
        case MapOf(key, of):
            pairs = [f"[{_text(key, name)},{_text(of, value[name])}]" for name in in_order(key, value)]
            return f"[{','.join(pairs)}]"
        case SpelledRecord(fields):
            types = dict(fields)
            return object_text((name, _text(types.get(name, JSON), each)) for name, each in value.items())
        case Record(fields):
            return object_text((name, _text(of, value[name])) for name, of in fields)
    if type_ == JSON:
        return canonical_text(json_of(value))
    is_bare = math.isfinite(value) if type_ == FLOAT else isinstance(value, bool | int)
    return scalar_text(value) if is_bare else json_string(scalar_text(value))
