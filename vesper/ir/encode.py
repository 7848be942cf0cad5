"""IR to canonical bytes and hashes, and back. docs/spec/ir.md is the definition; Rust reads the same bytes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from vesper.ir.nodes import (
    IR_VERSION,
    REF_KINDS,
    Call,
    Clause,
    Constant,
    Expression,
    If,
    Input,
    Literal,
    Logical,
    Node,
    Output,
    Place,
    Ref,
    Return,
    Source,
    Statement,
    Step,
    children,
)
from vesper.spec.operations import OPERATIONS
from vesper.spec.types import PRIMITIVES, Enum, SetOf, Type, match_parameter, substitute
from vesper.spec.values import from_json, to_json

MAX_DOCUMENT = 8 * 1024 * 1024
"""Bytes; a document that is larger no engine reads."""


class IrError(ValueError):
    """Bytes that are not a canonical IR document of this version."""


def canonical_json(value: object) -> bytes:
    """The one spelling of a JSON value."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("utf-8")


def encode(node: Node) -> bytes:
    """The canonical bytes of a numbered node."""
    return _encoded(node, node.expressions())[0]


def semantic_hash(node: Node) -> str:
    """Equal for two nodes that mean the same; prose, layout and file names do not count."""
    return _encoded(node, node.expressions())[1]


def encode_and_hash(node: Node) -> tuple[bytes, str] | None:
    """`encode` and `semantic_hash` at the price of one; None for a node that no engine would read."""
    # Asked first, because the types of a hostile node can fill the memory there is.
    expressions = node.expressions()
    if _size_of_types(expressions) > MAX_DOCUMENT:
        return None
    encoded, semantic = _encoded(node, expressions)
    return (encoded, semantic) if len(encoded) <= MAX_DOCUMENT else None


def _encoded(node: Node, expressions: list[Expression]) -> tuple[bytes, str]:
    # INVARIANT: `source` sorts last, so the document starts with what is hashed, but for the brace that closes it.
    hashed = canonical_json({"ir_version": IR_VERSION, "semantics": _semantics(node, expressions)})
    source = canonical_json(_source(node, expressions))
    return b'%s,"source":%s}' % (hashed[:-1], source), hashlib.sha256(hashed).hexdigest()


def _size_of_types(expressions: list[Expression]) -> int:
    """At least so many characters a document spends on types; an enum is written out wherever a member of it is."""
    known: dict[int, int] = {}

    def size(type_: Type) -> int:
        if isinstance(type_, SetOf):
            return size(type_.element)
        if not isinstance(type_, Enum):
            return 0
        if id(type_) not in known:
            known[id(type_)] = sum(len(member) + 3 for member in type_.members)
        return known[id(type_)]

    total = 0
    for expression in expressions:
        if isinstance(expression, Literal):
            total += size(expression.type)
        elif isinstance(expression, Call):
            total += sum(size(type_) for type_ in expression.of)
    return total


# -- writing --------------------------------------------------------------------------------------


def type_to_json(type_: Type) -> object:
    if isinstance(type_, Enum):
        return {"enum": list(type_.members)}
    return {"set": type_to_json(type_.element)} if isinstance(type_, SetOf) else type_.name


def _semantics(node: Node, expressions: list[Expression]) -> dict[str, Any]:
    return {
        "node_id": node.node_id,
        "type": node.type,
        "inputs": [
            {"name": i.name, "type": type_to_json(i.type)}
            | ({} if i.default is None else {"default": to_json(i.type, i.default)})
            for i in node.inputs
        ],
        "outputs": {"success": [{"name": o.name, "type": type_to_json(o.type)} for o in node.outputs]},
        "constants": [
            {"name": c.name, "type": type_to_json(c.type), "value": to_json(c.type, c.value)} for c in node.constants
        ],
        "expressions": [_expression(expression) for expression in expressions],
        "constraints": [{"holds": c.holds.index, "input": c.input} for c in node.constraints],
        "preconditions": [{"holds": c.holds.index} for c in node.preconditions],
        "body": [_statement(statement) for statement in node.body],
        "postconditions": [{"holds": c.holds.index} for c in node.postconditions],
    }


def _expression(expression: Expression) -> dict[str, Any]:
    operands = [child.index for child in children(expression)]
    match expression:
        case Literal():
            return {
                "literal": {
                    "type": type_to_json(expression.type),
                    "value": to_json(expression.type, expression.value),
                }
            }
        case Ref():
            return {expression.kind: expression.name}
        case Call():
            of = {"of": [type_to_json(type_) for type_ in expression.of]} if expression.of else {}
            return {"call": {"op": expression.op, "args": operands} | of}
        case If():
            return {"if": dict(zip(("condition", "then", "else"), operands, strict=True))}
        case Logical():
            return {expression.kind: operands}


def _statement(statement: Statement) -> dict[str, Any]:
    if isinstance(statement, Step):
        return {"step": {"name": statement.name, "value": statement.value.index}}
    return {"return": {"success": [{"name": name, "value": value.index} for name, value in statement.values]}}


def _source(node: Node, expressions: list[Expression]) -> dict[str, Any]:
    clauses = [clause for _, clauses in node.phases() for clause in clauses]
    return {
        "path": node.source.path,
        "sha256": node.source.sha256,
        "intent": node.source.intent,
        "spans": [_place(expression.place) for expression in expressions],
        "steps": {s.name: _place(s.place) for s in node.body if isinstance(s, Step)},
        "clauses": {str(clause.holds.index): clause.text for clause in clauses},
    }


def _place(place: Place) -> list[int]:
    return [place.line, place.column, place.end_line, place.end_column]


# -- reading --------------------------------------------------------------------------------------


def decode(data: bytes) -> Node:
    """The node that the bytes of `encode` spell. Only for bytes of our own making: engines verify, this trusts
    types."""
    try:
        document = json.loads(data)
    except ValueError as error:
        raise IrError(f"not JSON: {error}") from error
    if canonical_json(document) != data:
        raise IrError("not in canonical form")
    if document.get("ir_version") != IR_VERSION:
        raise IrError(f"format version {document.get('ir_version')!r}; this Vesper reads {IR_VERSION}")
    try:
        return _Reader(document["semantics"], document["source"]).node()
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise IrError(f"not an IR document: {error!r}") from error


def type_from_json(form: Any) -> Type:
    if isinstance(form, str):
        return PRIMITIVES[form]
    return Enum(tuple(form["enum"])) if "enum" in form else SetOf(type_from_json(form["set"]))


class _Reader:
    """Rebuilds the trees; operands stand before their users, so one pass is enough."""

    def __init__(self, semantics: dict[str, Any], source: dict[str, Any]) -> None:
        self._semantics = semantics
        self._source = source
        self._types: dict[tuple[str, str], Type] = {}
        self._table: list[Expression] = []

    def node(self) -> Node:
        semantics = self._semantics
        inputs = tuple(self._input(entry) for entry in semantics["inputs"])
        outputs = tuple(Output(o["name"], type_from_json(o["type"])) for o in semantics["outputs"]["success"])
        constants = tuple(self._constant(entry) for entry in semantics["constants"])
        for kind, declared in (("input", inputs), ("output", outputs), ("constant", constants)):
            self._types |= {(kind, each.name): each.type for each in declared}
        step_names = {s["step"]["value"]: s["step"]["name"] for s in semantics["body"] if "step" in s}
        for index, form in enumerate(semantics["expressions"]):
            expression = self._expression(index, form)
            self._table.append(expression)
            if index in step_names:
                self._types["step", step_names[index]] = expression.type
        source = Source(self._source["path"], self._source["sha256"], self._source["intent"])
        return Node(
            node_id=semantics["node_id"],
            type=semantics["type"],
            inputs=inputs,
            outputs=outputs,
            constants=constants,
            constraints=self._clauses("constraints"),
            preconditions=self._clauses("preconditions"),
            body=tuple(self._statement(form) for form in semantics["body"]),
            postconditions=self._clauses("postconditions"),
            source=source,
        )

    def _input(self, form: dict[str, Any]) -> Input:
        type_ = type_from_json(form["type"])
        return Input(form["name"], type_, from_json(type_, form["default"]) if "default" in form else None)

    def _constant(self, form: dict[str, Any]) -> Constant:
        type_ = type_from_json(form["type"])
        return Constant(form["name"], type_, from_json(type_, form["value"]))

    def _expression(self, index: int, form: dict[str, Any]) -> Expression:
        place = Place(*self._source["spans"][index])
        ((kind, body),) = form.items()
        if kind == "literal":
            type_ = type_from_json(body["type"])
            return Literal(type_, from_json(type_, body["value"]), place, index)
        if kind in REF_KINDS:
            return Ref(kind, body, self._types[kind, body], place, index)
        if kind == "call":
            args = tuple(self._table[argument] for argument in body["args"])
            of = tuple(type_from_json(type_) for type_ in body.get("of", ()))
            return Call(body["op"], of, args, _result_type(body["op"], args), place, index)
        if kind == "if":
            condition, then, otherwise = (self._table[body[part]] for part in ("condition", "then", "else"))
            return If(condition, then, otherwise, then.type, place, index)
        left, right = (self._table[operand] for operand in body)
        return Logical(kind, left, right, place, index)

    def _clauses(self, phase: str) -> tuple[Clause, ...]:
        return tuple(
            Clause(self._table[form["holds"]], self._source["clauses"][str(form["holds"])], form.get("input"))
            for form in self._semantics[phase]
        )

    def _statement(self, form: dict[str, Any]) -> Statement:
        if "step" in form:
            name = form["step"]["name"]
            return Step(name, self._table[form["step"]["value"]], Place(*self._source["steps"][name]))
        return Return(tuple((each["name"], self._table[each["value"]]) for each in form["return"]["success"]))


def _result_type(op: str, args: tuple[Expression, ...]) -> Type:
    spec = OPERATIONS[op]
    bindings: dict[str, Type] = {}
    for (_, pattern), argument in zip(spec.params, args, strict=True):
        match_parameter(pattern, argument.type, bindings)
    return substitute(spec.returns, bindings)
