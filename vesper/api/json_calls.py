"""`node.run_json`: JSON text to the outcome as canonical JSON (docs/spec/values.md).

The direct engine reads and writes such texts itself, and `run_json` is then its own function. Other nodes are called
with objects, and the outcome is written here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vesper.api.input_conversion import inputs_of_json
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
from vesper.values.json_forms import has_names
from vesper.values.json_value import canonical_text, json_of, json_string
from vesper.values.model import in_order, scalar_text
from vesper.values.types import FLOAT, JSON, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type

if TYPE_CHECKING:
    from vesper.api.node import Node

NEVER_BEGAN = b'{"at":null,"code":"bad_input"'
"""The start of the answer to refused inputs, and of no other answer."""


def json_entry(node: Node) -> Callable[..., bytes]:
    """Return the function that `node.run_json` is."""
    entries = node._entries
    own = None if entries is None else entries.json
    if entries is None or own is None:
        return _object_entry(node)
    if entries.sampling is not None:
        from vesper.api.batch_trace_sampling import sample_json

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
        plain = inputs_of_json(node._types, text)
        if plain.refused is not None:
            return _failed_json(Failed(ErrorCode.BAD_INPUT, None, (plain.refused,))).encode()
        if node._entries is None:
            host = node.host
            outcome = host.run(node._prepare(host), plain.inputs, start or node._start(None), node._limits).outcome
        else:
            outcome = node._entries.engine_call(plain.inputs, start, node._limits)
        if isinstance(outcome, Failed):
            outcome = Failed(outcome.code, outcome.at, tuple(map(plain.told, outcome.problems)))
        return outcome_json(node._compiled.node, outcome).encode()

    return run_json


# -- outcomes -------------------------------------------------------------------------------------


def outcome_json(node: ir.Node, outcome: Outcome) -> str:
    """Return the outcome of a node as canonical JSON."""
    match outcome:
        case Returned(value):
            types = {each.name: each.type for each in node.outputs}
            return f'{{"kind":"returned","value":{_fields(types, value)}}}'
        case DeclaredError(value):
            types = {each.name: each.type for each in node.errors}
            return f'{{"kind":"declared_error","value":{_fields(types, value)}}}'
        case Failed():
            return _failed_json(outcome)
        case ContractBroken(phase, index, values):
            clause = dict(node.phases())[phase][index]
            types = {each.name.lstrip("_"): each.type for each in ir.mentioned_refs(clause)}
            shown = _fields(types, values)
            return f'{{"index":{index},"kind":"contract_broken","phase":{json_string(phase)},"values":{shown}}}'
        case Denied(capability):
            return f'{{"capability":{json_string(capability)},"kind":"denied"}}'
        case LimitHit(limit):
            return f'{{"kind":"limit_hit","limit":{json_string(limit)}}}'
        case EngineFault(message):
            return f'{{"kind":"engine_fault","message":{json_string(message)}}}'


def _failed_json(outcome: Failed) -> str:
    problems = [f'{{"kind":"{each.kind.value}","path":{json_string(each.path)}}}' for each in outcome.problems]
    at = "null" if outcome.at is None else outcome.at
    return f'{{"at":{at},"code":{json_string(str(outcome.code))},"kind":"failed","problems":[{",".join(problems)}]}}'


def _fields(types: Mapping[str, Type], values: Mapping[str, Any]) -> str:
    """Return the fields as a JSON object. In an invariant of a node that ends with an error, outputs are null."""
    entries = ((name, "null" if each is None else _text(types[name], each)) for name, each in values.items())
    return _object(entries)


def _object(entries: Iterable[tuple[str, str]]) -> str:
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
            return _object((name, _text(of, each)) for name, each in value.items())
        case MapOf(key, of):
            pairs = [f"[{_text(key, name)},{_text(of, value[name])}]" for name in in_order(key, value)]
            return f"[{','.join(pairs)}]"
        case Record(fields):
            return _object((name, _text(of, value[name])) for name, of in fields)
    if type_ == JSON:
        return canonical_text(json_of(value))
    is_bare = math.isfinite(value) if type_ == FLOAT else isinstance(value, bool | int)
    return scalar_text(value) if is_bare else json_string(scalar_text(value))
