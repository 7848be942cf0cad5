"""Pydantic models of the inputs and outputs of a node (docs/how-to/use-with-fastapi.md).

Values are read by the rules of nodes, and bounds, lengths and patterns come from the clauses of the node. The node
itself still decides: clauses over several values are no part of a model.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, create_model
from pydantic_core import PydanticCustomError

from vesper.api.forms.records import attribute_name, class_name, defaults_of, python_type
from vesper.api.node import Node
from vesper.api.problems import describe_problem
from vesper.integrations.node_model import Models, NodeModel
from vesper.language.ir import nodes as ir
from vesper.language.json_schema.facts import ITEM, Facts, Path, find_facts
from vesper.language.json_schema.patterns import ecma_pattern
from vesper.values.inputs import accept_inputs
from vesper.values.json_forms import input_of_json
from vesper.values.model import plain, scalar_text
from vesper.values.types import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    JSON,
    PERIOD,
    STRING,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Outside,
    Record,
    SetOf,
    Type,
)

__all__ = ["Models", "NodeModel", "models"]
_made: WeakKeyDictionary[Node, Models[Any, Any]] = WeakKeyDictionary()
_AS_THEY_ARE = (BOOLEAN, FLOAT, INTEGER, JSON, STRING)
"""Scalars that Pydantic writes in JSON as nodes do; every other is written as the text that nodes use."""


def models(node: Node) -> Models[Any, Any]:
    """Return the Pydantic models of a node, made once: `models(node).Input` and `.Output`.

    Raises `TypeError` for names that no model can have as fields.
    """
    found = _made.get(node)
    if found is None:
        found = _made[node] = _Builder(node._compiled.node).models()
    return found


class _Builder:
    def __init__(self, node: ir.Node) -> None:
        self._node = node
        self._records: dict[Record, type[NodeModel]] = {}
        self._prefix = "".join(part.capitalize() for part in node.node_id.split("_"))

    def models(self) -> Models[Any, Any]:
        node = self._node
        asked = find_facts((*node.constraints, *node.preconditions), "input")
        given = self._model(f"{self._prefix}Input", ir.record_of(node.inputs), defaults_of(node), asked)
        answered = find_facts(node.postconditions, "output")
        return Models(given, self._model(f"{self._prefix}Output", ir.record_of(node.outputs), {}, answered))

    def _model(
        self, title: str, record: Record, defaults: Mapping[str, Any], facts: Mapping[Path, Facts]
    ) -> type[NodeModel]:
        outside = record.outside or Outside()
        if outside.flags or outside.rest is not None:
            raise TypeError(f"{class_name(record)} of {self._node.node_id} has flags or open keys: use JSON text")
        fields: dict[str, Any] = {}
        for each, type_ in record.fields:
            default = {"default": defaults[each]} if each in defaults else {}
            name, key = attribute_name(each), outside.name_of(each)
            about = Field(**default, alias=None if key == name else key, description=str(type_))
            fields[name] = self._annotation(type_, (each,), facts), about
        summary = self._node.source.intent if title.startswith(self._prefix) else f"{title} of {self._node.node_id}."
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Field name", UserWarning)  # such as `json`, an old method of models
            made: type[NodeModel] = create_model(title, __base__=NodeModel, __doc__=summary, **fields)
        made.vesper_record = record
        return made

    def _record(self, record: Record) -> type[NodeModel]:
        if record not in self._records:
            optional = {name: None for name, type_ in record.fields if isinstance(type_, OptionalOf)}
            self._records[record] = self._model(class_name(record), record, optional, {})
        return self._records[record]

    def _annotation(self, type_: Type, path: Path, facts: Mapping[Path, Facts]) -> Any:
        """Return the annotation of a value: its Python type, what holds for it, and how it is read and written."""
        known = facts.get(path, Facts())
        match type_:
            case OptionalOf(inner):
                return self._annotation(inner, path, facts) | None
            case Record():
                return self._record(type_)
            case ArrayOf(element):
                return Annotated[list[self._annotation(element, (*path, ITEM), facts)], _lengths(known)]  # type: ignore[misc]  # made at run time
            case MapOf(key, value):
                both = self._annotation(key, (), {}), self._annotation(value, (*path, ITEM), facts)
                return Annotated[dict[both], _lengths(known), BeforeValidator(partial(input_of_json, type_))]  # type: ignore[misc, valid-type]  # as above
            case Enum(_, outside) if outside:
                raise TypeError(f"{self._node.node_id} has an enum with other texts outside: use JSON text")
        parts = [_bounds(known, type_), BeforeValidator(partial(_read, type_))]
        if type_ not in _AS_THEY_ARE and not isinstance(type_, Enum | SetOf):
            parts.append(PlainSerializer(scalar_text, return_type=str, when_used="json"))
        if type_ == PERIOD:
            parts.append(WithJsonSchema({"type": "string"}))
        return Annotated[python_type(type_, self._record), *parts]


def _read(type_: Type, given: object) -> object:
    """Return a value as nodes read it. Raises an error that Pydantic reports."""
    values, problems = accept_inputs([("value", type_, None)], {"value": input_of_json(type_, given)})
    if not problems:
        return plain(values["value"])
    told = describe_problem(Record((("value", type_),)), problems[0], {"value": given})
    # Braces are places of Pydantic's templates.
    raise PydanticCustomError(f"vesper_{told.kind}", "{message}", {"message": told.message})


def _bounds(facts: Facts, type_: Type) -> Any:
    """Return what the clauses of the node state of a scalar."""
    if type_ == STRING or isinstance(type_, SetOf):
        return _lengths(facts)
    low = {} if facts.low is None else {"gt" if facts.is_low_open else "ge": facts.low}
    high = {} if facts.high is None else {"lt" if facts.is_high_open else "le": facts.high}
    of = float if type_ == FLOAT else int if type_ == INTEGER else lambda bound: bound
    return Field(**{name: of(bound) for name, bound in (low | high).items()})  # type: ignore[arg-type]  # bounds of one type


def _lengths(facts: Facts) -> Any:
    patterns = [each for text in facts.patterns if (each := ecma_pattern(text)) is not None]
    extra: Any = {"pattern": patterns[0]} if len(patterns) == 1 else None  # the node matches; this is documentation
    return Field(min_length=facts.min_length, max_length=facts.max_length, json_schema_extra=extra)
