"""The inputs of a node as a form: one field for each type, with the bounds that its clauses set."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vesper.api.input_conversion import inputs_of_json
from vesper.api.problems import describe_problems
from vesper.compiler import Compiled
from vesper.dashboard.problem import Refused
from vesper.language.json_schema.facts import ITEM, KEY, Facts, Path, find_facts
from vesper.language.json_schema.patterns import TEXTS
from vesper.serve.openapi.document import of_caller
from vesper.values.inputs import accept_inputs
from vesper.values.json_forms import has_names
from vesper.values.model import show
from vesper.values.types import (
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Outside,
    Primitive,
    Record,
    SetOf,
    Type,
    without_null,
)
from vesper.verify.inputs.generator import InputGenerator

MAX_DRAWS = 40
_MAX_SHOWN_PROBLEMS = 100
_PLACE = re.compile(r" \(line [0-9]+, column [0-9]+\)$")
"""The place in a JSON text, which a form does not have."""
_READABLE = re.compile(r"[A-Za-z0-9.:/@+-][A-Za-z0-9_.:/@+ -]{0,30}", re.ASCII)
_FORMATS = {
    "decimal": "12.50",
    "date": "2026-11-15",
    "timestamp": "2026-11-15T12:00:00Z",
    "duration": "PT90S",
    "time_of_day": "14:30",
    "period": "P1M",
    "bytes": "base64",
    "json": "any JSON",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One input, field, item or key. `kind` selects its control."""

    name: str
    kind: str
    type: str
    is_optional: bool = False
    hint: str = ""
    example: str = ""
    """The form of its texts, for an empty field."""
    pattern: str = ""
    choices: tuple[str, ...] = ()
    default: Any = None
    has_default: bool = False
    fields: tuple[Field, ...] = ()
    """Fields of a record; the item of an array or a set; key and value of a map."""


@dataclass(frozen=True, slots=True)
class Form:
    node: str
    intent: str
    fields: tuple[Field, ...]
    inputs: Mapping[str, Any]
    """Inputs to start with: those of the first case, else an example; empty where none was found."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Checked:
    """Problems of inputs as `vesper run` reports them, and the command line with these inputs."""

    problems: tuple[FieldProblem, ...]
    command: str


def describe_form(compiled: Compiled) -> Form:
    """Return the fields of the inputs, by the names that callers use."""
    node = compiled.node
    facts = find_facts((*node.constraints, *node.preconditions), "input")
    types = compiled.declared[0] if compiled.declared else tuple(each.type for each in node.inputs)
    fields = []
    for each, type_ in zip(node.inputs, types, strict=True):
        if each.name in node.flagged:
            continue
        key = each.outside or each.name
        found = _field(key, type_, (each.name,), facts)
        if each.default is not None:
            found = replace(found, default=of_caller((each,), {each.name: each.default})[key], has_default=True)
        fields.append(found)
    return Form(node.node_id, node.source.intent, tuple(fields), _first_inputs(compiled))


def _first_inputs(compiled: Compiled) -> dict[str, Any]:
    if compiled.cases:
        return of_caller(compiled.node.inputs, compiled.cases[0].inputs)
    try:
        return draw_inputs(compiled, 0)
    except Refused:
        return {}


def _field(name: str, type_: Type, path: Path, facts: Mapping[Path, Facts]) -> Field:
    inner = without_null(type_)
    kind, parts, choices = str(inner), (), ()  # type: str, tuple[Field, ...], tuple[str, ...]
    match inner:
        case ArrayOf(element) | SetOf(element):
            kind = "array" if isinstance(inner, ArrayOf) else "set"
            parts = (_field("item", element, (*path, ITEM), facts),)
        case MapOf(key, value) if has_names(key):
            kind = "map"
            parts = (_field("key", key, (*path, KEY), facts), _field("value", value, (*path, ITEM), facts))
        case Record(fields, _, outside):
            names = outside or Outside()
            hidden = names.hidden()
            kind = "record"
            parts = tuple(
                _field(names.name_of(each), of, (*path, each), facts) for each, of in fields if each not in hidden
            )
        case Enum(members, outside):
            kind, choices = "enum", tuple(outside or members)
        case Primitive():
            pass
        case _:  # recursive types, and maps whose keys are no names
            kind = "json"
    hint = " and ".join(_words(facts.get(path, Facts()), kind))
    pattern = TEXTS.get(kind, "")
    is_optional = isinstance(type_, OptionalOf)
    return Field(name, kind, str(type_), is_optional, hint, _FORMATS.get(kind, ""), pattern, choices, fields=parts)


def _words(facts: Facts, kind: str) -> Iterator[str]:
    if facts.low is not None:
        yield f"{'more than' if facts.is_low_open else 'at least'} {facts.low}"
    if facts.high is not None:
        yield f"{'less than' if facts.is_high_open else 'at most'} {facts.high}"
    what = "characters" if kind in ("string", "bytes") else "items"
    if facts.min_length:
        yield f"at least {facts.min_length} {what if facts.min_length > 1 else what[:-1]}"
    if facts.max_length is not None:
        yield f"at most {facts.max_length} {what}"
    for pattern in facts.patterns:
        yield f"matches {pattern}"


def check_inputs(compiled: Compiled, inputs: object) -> Checked:
    """Return the problems of inputs by their place in the form, and the command that runs the node with them."""
    node = compiled.node
    given = inputs_of_json(node.inputs, json.dumps(inputs))
    problems = given.refused or tuple(map(given.caller_problem, accept_inputs(node.declared_inputs, given.inputs)[1]))
    described = describe_problems(node, problems[:_MAX_SHOWN_PROBLEMS], given.inputs, given.source)
    found = tuple(FieldProblem(each.path, _PLACE.sub("", each.message)) for each in described)
    return Checked(found, _command(compiled, inputs if isinstance(inputs, dict) else {}))


def _command(compiled: Compiled, inputs: Mapping[str, Any]) -> str:
    words = ["vesper", "run", compiled.node.node_id]
    names = {each.outside or each.name: each.name for each in compiled.node.inputs}
    for key, value in inputs.items():
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            words += ["--input", f"{names.get(key, key)}={text}"]
    return shlex.join(words)


def draw_inputs(compiled: Compiled, seed: int) -> dict[str, Any]:
    """Return inputs that the node accepts and that meet its preconditions: the plainest of several draws."""
    node = compiled.node
    generator = InputGenerator(node, seed, seeks_boundaries=False, examples=[each.inputs for each in compiled.cases])
    best: tuple[int, dict[str, object]] | None = None
    for _ in range(MAX_DRAWS):
        drawn = generator.draw()
        for inputs in (_replace_texts(drawn), drawn):
            values = generator.solver.read(inputs)
            if values is None or not generator.solver.meets(values):
                continue
            text = show(dict(inputs))
            score = len(text) + 200 * text.count("[]") + 100 * (inputs is drawn)
            if best is None or score < best[0]:
                best = score, inputs
            break
    if best is None:
        raise Refused("no valid inputs were found for this node", "Fill the form, or choose a case.")
    return of_caller(node.inputs, best[1])


def _replace_texts(value: Any) -> Any:
    """Replace texts of drawn inputs that show no plain word by an example word."""
    match value:
        case str():
            return value if _READABLE.fullmatch(value) else "abc"
        case dict():
            return {_replace_texts(key): _replace_texts(each) for key, each in value.items()}
        case list():
            return [_replace_texts(each) for each in value]
        case _:
            return value
