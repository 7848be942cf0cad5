"""Import of a JSON decision model as the text of a node, with a list of the parts left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from vesper.importers.writer import CommentedValue, InlineValue, QuotedText, node_name, write_node
from vesper.importers.zen.flow import Flow, Problem, Step
from vesper.importers.zen.graph import Graph
from vesper.importers.zen.model import Model, read_model
from vesper.importers.zen.terms import Leaf, Term, Tree, Value, finished, inside_names
from vesper.importers.zen.types import (
    JSON,
    NOTHING,
    NUMBER,
    TEXT,
    ArrayOf,
    Record,
    Slot,
    Variable,
    complete,
    join,
    resolve,
    type_of_json,
    type_of_schema,
)

_WRITES_OUTSIDE_NAMES = True
_CLOCK = {
    "operation": "validation",
    "require": [
        {
            "condition": "now() >= timestamp('2000-01-01T00:00:00Z')",
            "error": {"error_code": "clock_not_set", "message": "the clock is before the year 2000"},
        }
    ],
}
_PASSES = 3
"""Passes over a model: types that a later node decides are known to the earlier ones in the next pass."""
_ZEN_DATE = (
    "IF length(text_) == 10 THEN to_timestamp(date(text_)) "
    "ELSE IF length(text_) == 19 AND text_[10] == ' ' THEN timestamp(text_ + 'Z') ELSE timestamp(text_)"
)


@dataclass(frozen=True, slots=True)
class Imported:
    """A node that was written from a model."""

    node_id: str
    text: str
    problems: tuple[Problem, ...]
    inputs: Record
    outputs: Record
    """Outputs by their outside names; the one output `result` where the model returns an array."""
    is_whole: bool
    """Whether the model returns one value instead of an object."""


def import_model(text: str, name: str, read_key: Callable[[str], str | None] = lambda _: None) -> Imported:
    """Return the node of a JDM file called `name`; `read_key` returns the text of a model that it evaluates.

    Raises `ModelError` for a file that is no model.
    """
    model = read_model(text)
    inputs = _inputs(model)

    def read(key: str) -> Model | None:
        found = read_key(key)
        return read_model(found) if found is not None else None

    for _ in range(_PASSES - 1):
        _translate_model(model, inputs, read)
    return _Writer(name, model, inputs, *_translate_model(model, inputs, read)).imported()


def _translate_model(model: Model, inputs: Record, read: Callable[[str], Model | None]) -> tuple[Flow, Graph, Value]:
    """Return the steps of a model and its result. Completes the record of inputs by the model's use of them."""
    flow = Flow()
    names = inside_names(inputs)
    flow.taken |= set(names.values())
    graph = Graph(flow, read)
    return flow, graph, graph.translate(model, _context(inputs, names))


def _inputs(model: Model) -> Record:
    slots = [type_of_json(test.input, "input", is_open=True) for test in model.tests if isinstance(test.input, dict)]
    shape = join(slots, "input") if slots else Slot(Record("input", is_open=True))
    endpoint = model.input_node().content
    schema = type_of_schema(getattr(endpoint, "schema", None), "input")
    if schema is not None:
        complete(shape, schema)
    assert isinstance(shape.type, Record)
    return shape.type


def _context(inputs: Record, names: dict[str, str]) -> Tree:
    fields: dict[str, Value] = {}
    for key, slot in inputs.fields.items():
        checks = (names[key],) if slot.is_optional else ()
        term = Term(names[key], resolve(slot.type), checks=checks, is_path=True, slot=slot)
        fields[key] = Leaf(term, is_absent_if_null=slot.is_optional)
    return Tree(fields, inputs)


@dataclass(slots=True)
class _Writer:
    name: str
    model: Model
    input_record: Record
    flow: Flow
    graph: Graph
    result: Value
    types: dict[str, dict[str, Any]] = field(default_factory=dict)
    named: dict[tuple[Any, ...], str] = field(default_factory=dict)
    output_types: dict[str, str] = field(default_factory=dict)

    def imported(self) -> Imported:
        expressions = self.graph.expressions
        is_whole = isinstance(self.result, Leaf)
        values = {"result": self.result} if isinstance(self.result, Leaf) else self.result.fields
        terms = {key: expressions.as_value(expressions.from_context(value)) for key, value in values.items()}
        terms = {key: term for key, term in terms.items() if term.type != NOTHING} or {
            "result": Term("null", JSON, is_optional=True)
        }
        outputs = Record("output", {key: Slot(resolve(term.type), term.is_nullable) for key, term in terms.items()})
        node_id = f"{node_name(self.name)}_v1"
        document: dict[str, Any] = {
            "node_id": node_id,
            "type": "http_handler" if "now" in expressions.uses else "function",
            "intent": f"Decide {self.name}, imported from a JSON decision model of zen",
            "types": self.types,
            "inputs": self._fields(self.input_record),
        }
        success = self._fields(outputs)
        document["outputs"] = {"success": success}
        self.output_types = {
            inside: self.type_text(outputs.fields[key]) for key, inside in inside_names(outputs).items()
        }
        has_clock = "now" in expressions.uses
        codes = [*(["not_translated"] if self.flow.untranslated else []), *(["clock_not_set"] if has_clock else [])]
        if codes:
            document["outputs"]["error"] = {"error_code": f"enum[{', '.join(codes)}]", "message": "string"}
        if self.flow.untranslated:
            constant = InlineValue({"type": "boolean", "value": "false"})
            document["constants"] = dict.fromkeys(self.flow.untranslated, constant)
        if "zen_date" in expressions.uses:
            params = InlineValue({"text_": "string"})
            document["functions"] = {"zen_date": {"params": params, "returns": "timestamp", "value": _ZEN_DATE}}
        names = inside_names(outputs)
        returned = {names[key]: finished(term) for key, term in terms.items()}
        steps = self.flow.used_steps(" ".join(returned.values()))
        document["flow"] = [
            *([_CLOCK] if has_clock else []),
            *map(self._step, steps),
            {"operation": "return", "success": returned},
        ]
        cases = self._cases(outputs, is_whole=is_whole)
        if cases:
            document["testing"] = {"test_cases": cases}
        if not self.types:
            del document["types"]
        header = (f"Imported from {self.name} (JSON decision model).", *(f"{each}" for each in self.flow.problems))
        return Imported(
            node_id, write_node(document, header), tuple(self.flow.problems), self.input_record, outputs, is_whole
        )

    # Types

    def type_text(self, slot: Slot) -> str:
        """Return the text of a type; a record is declared under a name."""
        text = self._type(slot)
        return f"optional<{text}>" if slot.is_optional else text

    def _type(self, slot: Slot) -> str:
        type_ = resolve(slot.type)
        if isinstance(type_, ArrayOf):
            return f"array<{self.type_text(type_.item)}>"
        if isinstance(type_, Variable) or type_ == NOTHING:
            return "json"
        if not isinstance(type_, Record):
            return type_.name
        if not type_.fields:
            return "json"
        fields = self._fields(type_)
        key = tuple((name, str(each)) for name, each in fields.items())
        if key not in self.named:
            name = _type_name(type_.hint, set(self.types))
            self.named[key] = name
            self.types[name] = {"fields": fields}
        return self.named[key]

    def _fields(self, record: Record) -> dict[str, Any]:
        names = inside_names(record)
        fields: dict[str, Any] = {}
        for key, slot in record.fields.items():
            text = self.type_text(slot)
            fields[names[key]] = (
                text if names[key] == key or not _WRITES_OUTSIDE_NAMES else InlineValue({"type": text, "as": key})
            )
        return fields

    # Steps

    def _step(self, step: Step) -> Any:
        fields: dict[str, Any] = {}
        for key, value in step.fields.items():
            if key == "rows":
                if step.type is not None:
                    fields["type"] = self.type_text(step.type)
                value = [InlineValue(row) for row in value]
            elif key == "outputs":
                value = {name: self.type_text(slot) for name, slot in value.items()}
            elif key == "steps":
                value = [self._step(each) for each in step.inner]
            elif key == "value" and step.type is not None:
                # The type of an output is the place of a step with its name.
                text = self.type_text(step.type) if step.is_typed or step.name in self.output_types else ""
                if step.is_typed or self.output_types.get(step.name, text) != text:
                    fields["type"] = text
            fields[key] = value
        return CommentedValue(fields, step.note) if step.note else fields

    # Cases

    def _cases(self, outputs: Record, *, is_whole: bool) -> list[Any]:
        cases = []
        has_clock = "now" in self.graph.expressions.uses
        for at, test in enumerate(self.model.tests, 1):
            place = f"test {at}"
            if not isinstance(test.input, dict):
                self.flow.problems.append(Problem(place, "its input is no object"))
                continue
            case: dict[str, Any] = {"name": place, "inputs": _literal(test.input, Slot(self.input_record))}
            if has_clock:
                case["now"] = "2026-01-01T00:00:00Z"
                self.flow.problems.append(
                    Problem(place, "the model reads the clock; the case sets it to 2026-01-01", is_refused=False)
                )
            expected = {"result": test.output} if is_whole else test.output
            if not isinstance(expected, dict):
                self.flow.problems.append(Problem(place, "its output is no object"))
                continue
            case["expect"] = self._expected(expected, outputs, place)
            cases.append(case)
        return cases

    def _expected(self, expected: dict[str, Any], outputs: Record, place: str) -> dict[str, Any]:
        names = inside_names(outputs)
        found: dict[str, Any] = {}
        for key, value in expected.items():
            if key not in outputs.fields:
                self.flow.problems.append(Problem(place, f"it expects `{key}`, which the node does not output"))
            elif _is_inexact(value):
                text = f"it expects `{key}` as a binary number; it is not compared"
                self.flow.problems.append(Problem(place, text, is_refused=False))
            else:
                try:
                    found[names[key]] = _literal(value, outputs.fields[key])
                except _UnfitValue:
                    self.flow.problems.append(
                        Problem(place, f"it expects `{key}` with another type than the node outputs")
                    )
        return found


class _UnfitValue(Exception):
    """A value of a test that is no value of its type."""


def _literal(value: Any, slot: Slot) -> Any:
    """Return a value of a test as a literal of its type."""
    type_ = resolve(slot.type)
    if value is None and (slot.is_optional or type_ == NOTHING):
        return "null"
    if isinstance(type_, Variable) or type_ == JSON or (isinstance(type_, Record) and not type_.fields):
        return QuotedText(_json(value))
    match value:
        case bool() if type_ not in (NUMBER, TEXT):
            return "true" if value else "false"
        case int() | Decimal() if type_ == NUMBER and not isinstance(value, bool):
            return f"{Decimal(value):f}"
        case str() if type_ == TEXT:
            return QuotedText(value) if value in ("", "null", "~") else value
        case list() if isinstance(type_, ArrayOf):
            return InlineValue([_literal(each, type_.item) for each in value])
        case dict() if isinstance(type_, Record) and all(key in type_.fields for key in value):
            names = inside_names(type_)
            return InlineValue({names[key]: _literal(each, type_.fields[key]) for key, each in value.items()})
    raise _UnfitValue


def _json(value: Any) -> str:
    """Return canonical JSON text; numbers keep their digits."""
    import json

    match value:
        case Decimal():
            return f"{value:f}"
        case list():
            return "[" + ", ".join(map(_json, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{json.dumps(key)}: {_json(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _is_inexact(value: Any) -> bool:
    """Return whether a number has more digits than a binary number holds. Its last digits are then inexact in zen."""
    match value:
        case Decimal():
            return len(value.as_tuple().digits) > 15
        case list():
            return any(map(_is_inexact, value))
        case dict():
            return any(map(_is_inexact, value.values()))
    return False


def _type_name(hint: str, taken: set[str]) -> str:
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", hint)
    name = "".join(word[:1].upper() + word[1:].lower() for word in re.split(r"[^A-Za-z0-9]+", words) if word)
    name = name if name[:1].isalpha() else f"Type{name}"
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}{number}", number + 1
    return unique
