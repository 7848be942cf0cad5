"""A JSON decision model: nodes, edges and tests, read and checked for their shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

MAX_BYTES = 16 * 2**20
MAX_NODES = 1_000


class ModelError(Exception):
    """A file that is no JSON decision model; the text says where."""


@dataclass(frozen=True, slots=True)
class Column:
    id: str
    name: str
    field: str
    """The expression of an input column, the path of an output column; empty for a column of conditions."""


@dataclass(frozen=True, slots=True)
class Transform:
    """How a table or an expression node takes its input and gives its output."""

    input_field: str
    output_path: str
    is_loop: bool
    passes_through: bool


@dataclass(frozen=True, slots=True)
class Table:
    is_collect: bool
    inputs: tuple[Column, ...]
    outputs: tuple[Column, ...]
    rules: tuple[dict[str, str], ...]
    transform: Transform


@dataclass(frozen=True, slots=True)
class ExpressionList:
    entries: tuple[tuple[str, str], ...]
    transform: Transform


@dataclass(frozen=True, slots=True)
class Switch:
    is_collect: bool
    statements: tuple[tuple[str, str], ...]
    """Id and condition of each statement; an empty condition always holds."""


@dataclass(frozen=True, slots=True)
class SubModel:
    key: str
    transform: Transform


@dataclass(frozen=True, slots=True)
class Foreign:
    """A node whose content has no translation: its kind and its text."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The input node, with its schema, or an output node."""

    is_input: bool
    schema: Any = None


@dataclass(frozen=True, slots=True)
class GraphNode:
    id: str
    name: str
    content: Table | ExpressionList | Switch | SubModel | Foreign | Endpoint


@dataclass(frozen=True, slots=True)
class Edge:
    source: str
    target: str
    handle: str
    """The statement of a switch that the edge leaves from."""


@dataclass(frozen=True, slots=True)
class Test:
    input: Any
    output: Any


@dataclass(frozen=True, slots=True)
class Model:
    nodes: dict[str, GraphNode]
    edges: tuple[Edge, ...]
    tests: tuple[Test, ...] = field(default=())

    def input_node(self) -> GraphNode:
        return next(
            each for each in self.nodes.values() if isinstance(each.content, Endpoint) and each.content.is_input
        )


def read_model(text: str) -> Model:
    """Return the model of a JDM file. Raises `ModelError`."""
    try:
        document = json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"the file is no JSON: {error}") from error
    document = _mapping(document, "the file")
    listed = _list(document.get("nodes"), "`nodes`")
    if len(listed) > MAX_NODES:
        raise ModelError(f"the model has more than {MAX_NODES} nodes")
    nodes: dict[str, GraphNode] = {}
    for at, each in enumerate(listed):
        node = _node(_mapping(each, f"nodes[{at}]"), f"nodes[{at}]")
        if node.id in nodes:
            raise ModelError(f"nodes[{at}]: two nodes have the id `{node.id}`")
        nodes[node.id] = node
    edges = tuple(
        _edge(_mapping(each, f"edges[{at}]"), nodes, f"edges[{at}]")
        for at, each in enumerate(_list(document.get("edges", []), "`edges`"))
    )
    inputs = sum(isinstance(each.content, Endpoint) and each.content.is_input for each in nodes.values())
    if inputs != 1:
        raise ModelError(f"the model has {inputs} input nodes instead of one")
    tests = tuple(
        Test(_mapping(each, f"tests[{at}]").get("input", {}), each.get("output"))
        for at, each in enumerate(_list(document.get("tests", []), "`tests`"))
    )
    return Model(nodes, edges, tests)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"`{name}` is no number of JSON")


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelError(f"{place} is not an object")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise ModelError(f"{place} is not a list")
    return value


def _text(value: Any, place: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ModelError(f"{place} is not a string")
    return value


def _edge(edge: dict[str, Any], nodes: dict[str, GraphNode], place: str) -> Edge:
    source, target = _text(edge.get("sourceId"), f"{place}.sourceId"), _text(edge.get("targetId"), f"{place}.targetId")
    for each in (source, target):
        if each not in nodes:
            raise ModelError(f"{place}: no node has the id `{each}`")
    return Edge(source, target, _text(edge.get("sourceHandle"), f"{place}.sourceHandle"))


def _node(node: dict[str, Any], place: str) -> GraphNode:
    kind = _text(node.get("type"), f"{place}.type")
    content = node.get("content")
    readers: dict[str, Callable[[dict[str, Any], str], Table | ExpressionList | Switch | SubModel]] = {
        "decisionTableNode": _table,
        "expressionNode": _expressions,
        "switchNode": _switch,
        "decisionNode": _sub_model,
    }
    found: Table | ExpressionList | Switch | SubModel | Foreign | Endpoint
    if kind in ("inputNode", "outputNode"):
        found = Endpoint(kind == "inputNode", _schema(content))
    elif kind in readers:
        found = readers[kind](_mapping(content, f"{place}.content"), f"{place}.content")
    else:
        source = content.get("source", "") if isinstance(content, dict) else content
        found = Foreign(kind, source if isinstance(source, str) else json.dumps(content, default=str))
    return GraphNode(_text(node.get("id"), f"{place}.id"), _text(node.get("name"), f"{place}.name"), found)


def _schema(content: Any) -> Any:
    schema = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(schema, str) or not schema.strip():
        return schema
    try:
        return json.loads(schema, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None


def _transform(content: dict[str, Any], place: str) -> Transform:
    mode = _text(content.get("executionMode"), f"{place}.executionMode") or "single"
    if mode not in ("single", "loop"):
        raise ModelError(f"{place}.executionMode is `{mode}`, neither `single` nor `loop`")
    return Transform(
        _text(content.get("inputField"), f"{place}.inputField").strip(),
        _text(content.get("outputPath"), f"{place}.outputPath").strip(),
        mode == "loop",
        content.get("passThrough") is True,
    )


def _columns(content: dict[str, Any], key: str, place: str) -> tuple[Column, ...]:
    columns = []
    for at, each in enumerate(_list(content.get(key, []), f"{place}.{key}")):
        where = f"{place}.{key}[{at}]"
        column = _mapping(each, where)
        texts = [_text(column.get(name), f"{where}.{name}") for name in ("id", "name", "field")]
        columns.append(Column(texts[0], texts[1], texts[2].strip()))
    return tuple(columns)


def _table(content: dict[str, Any], place: str) -> Table:
    policy = _text(content.get("hitPolicy"), f"{place}.hitPolicy") or "first"
    if policy not in ("first", "collect"):
        raise ModelError(f"{place}.hitPolicy is `{policy}`, neither `first` nor `collect`")
    rules = []
    for at, each in enumerate(_list(content.get("rules", []), f"{place}.rules")):
        rule = _mapping(each, f"{place}.rules[{at}]")
        rules.append({key: _text(value, f"{place}.rules[{at}].{key}") for key, value in rule.items()})
    inputs, outputs = _columns(content, "inputs", place), _columns(content, "outputs", place)
    return Table(policy == "collect", inputs, outputs, tuple(rules), _transform(content, place))


def _expressions(content: dict[str, Any], place: str) -> ExpressionList:
    entries = []
    for at, each in enumerate(_list(content.get("expressions", []), f"{place}.expressions")):
        entry = _mapping(each, f"{place}.expressions[{at}]")
        key, value = (_text(entry.get(name), f"{place}.expressions[{at}].{name}") for name in ("key", "value"))
        entries.append((key.strip(), value))
    return ExpressionList(tuple(entries), _transform(content, place))


def _switch(content: dict[str, Any], place: str) -> Switch:
    statements = []
    for at, each in enumerate(_list(content.get("statements", []), f"{place}.statements")):
        statement = _mapping(each, f"{place}.statements[{at}]")
        id_, condition = (
            _text(statement.get(name), f"{place}.statements[{at}].{name}") for name in ("id", "condition")
        )
        statements.append((id_, condition.strip()))
    return Switch(_text(content.get("hitPolicy"), f"{place}.hitPolicy") == "collect", tuple(statements))


def _sub_model(content: dict[str, Any], place: str) -> SubModel:
    return SubModel(_text(content.get("key"), f"{place}.key"), _transform(content, place))
