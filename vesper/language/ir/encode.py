"""Encoder from IR to canonical bytes and hashes, defined in docs/spec/ir.md. Rust reads the same bytes."""

from __future__ import annotations

import hashlib
import json
from json.encoder import encode_basestring as _quoted
from typing import Any

from vesper.language.ir.flow_json import block_to_json, callee_to_json, grants_to_json, machine_to_json
from vesper.language.ir.lookup_tables import MAX_TABLES, tables_to_text
from vesper.language.ir.nodes import (
    IR_VERSION,
    Apply,
    Array,
    Call,
    Expression,
    Field,
    For,
    Function,
    If,
    Input,
    Let,
    Literal,
    Local,
    Logical,
    Loop,
    Node,
    Now,
    Output,
    ParameterUse,
    Place,
    Raise,
    RecordValue,
    Ref,
    Require,
    Result,
    Return,
    children,
    record_of,
)
from vesper.language.ir.statements import all_statements
from vesper.language.ir.tables import table_to_json
from vesper.language.ir.taint import taint_to_json
from vesper.language.ir.type_json import field_to_json, type_to_json
from vesper.values.model import Value, to_json
from vesper.values.types import ArrayOf, Enum, MapOf, OptionalOf, Primitive, Record, SetOf, Type

MAX_DOCUMENT = 8 * 1024 * 1024
"""Maximum size in bytes that engines read."""
MAX_EXPRESSIONS = 65_536
"""Maximum number of expressions that engines read."""


# One encoder, since `json.dumps` would create one per call.
_encode_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical_json(value: object) -> bytes:
    """Return the canonical text of a JSON value."""
    return _encode_json(value).encode("utf-8")


def encode(node: Node) -> bytes:
    """Return the canonical bytes of a numbered node."""
    return _encode_parts(node, node.expressions())[0]


def semantic_hash(node: Node) -> str:
    """Return the semantic hash. Prose, layout and file names do not affect it."""
    return _encode_parts(node, node.expressions())[1]


def encode_and_hash(node: Node) -> tuple[bytes, str] | None:
    """Return the results of `encode` and `semantic_hash` in one pass. Returns None for a node too large for engines."""
    # Checked first, because the types of a hostile node can exhaust memory.
    expressions = node.expressions()
    if _size_of_types(expressions) > MAX_DOCUMENT:
        return None
    encoded, semantic = _encode_parts(node, expressions)
    in_tables = sum(len(each.text.encode()) for each in node.lookup_tables)
    fits = len(encoded) - in_tables <= MAX_DOCUMENT and in_tables <= MAX_TABLES
    return (encoded, semantic) if fits else None


def _encode_parts(node: Node, expressions: list[Expression]) -> tuple[bytes, str]:
    # INVARIANT: `source`, `tables` and `taint` sort last: the document starts with the hashed text without its brace.
    hashed = f'{{"ir_version":{IR_VERSION},"semantics":{_semantics(node, expressions)}}}'.encode()
    source = _source(node, expressions).encode()
    flags = b"" if node.taint is None else b',"taint":%s' % canonical_json(taint_to_json(node.taint))
    tables = b',"tables":%s' % tables_to_text(node.lookup_tables).encode() if node.lookup_tables else b""
    return b'%s,"source":%s%s%s}' % (hashed[:-1], source, tables, flags), hashlib.sha256(hashed).hexdigest()


def _size_of_types(expressions: list[Expression]) -> int:
    """Return a lower bound for the characters of types. Types are written out at each use."""
    known: dict[int, int] = {}

    def size(type_: Type) -> int:
        if id(type_) not in known:
            known[id(type_)] = measure(type_)
        return known[id(type_)]

    def measure(type_: Type) -> int:
        match type_:
            case Enum(members):
                return sum(len(member) + 3 for member in members)
            case SetOf(inner) | ArrayOf(inner) | OptionalOf(inner):
                return size(inner)
            case MapOf(key, value):
                return size(key) + size(value)
            case Record(fields):
                return sum(len(name) + 20 + size(field) for name, field in fields)
            case _:
                return 0

    total = 0
    for expression in expressions:
        if isinstance(expression, Literal):
            total += 0 if isinstance(expression.type, Primitive) else size(expression.type)
        elif isinstance(expression, Call):
            for type_ in expression.of:
                total += size(type_)
        elif isinstance(expression, Array):
            total += size(expression.of)
    return total


# -- writing --------------------------------------------------------------------------------------
# Most of a document are its expressions and their spans. Both are written directly as text; a dictionary for each,
# sorted by the encoder, takes twice as long.


def _with_list(form: dict[str, Any], name: str, items: list[str]) -> str:
    """Return the canonical text of an object with an additional member of encoded items."""
    before = _encode_json({key: value for key, value in form.items() if key < name})
    after = _encode_json({key: value for key, value in form.items() if key > name})
    assert before != "{}" != after, "commas are needed on both sides"
    return f'{before[:-1]},"{name}":[{",".join(items)}],{after[1:]}'


def _semantics(node: Node, expressions: list[Expression]) -> str:
    form: dict[str, Any] = {
        "node_id": node.node_id,
        "type": node.type,
        "inputs": [
            _declaration_form(i) | ({} if i.default is None else {"default": to_json(i.type, i.default)})
            for i in node.inputs
        ],
        "outputs": {
            "success": [_declaration_form(o) for o in node.outputs],
            "error": [_declaration_form(o) for o in node.errors],
        },
        "machines": [machine_to_json(machine) for machine in node.machines],
        "calls": [callee_to_json(callee) for callee in node.calls],
        "constants": [
            {"name": c.name, "type": type_to_json(c.type), "value": to_json(c.type, c.value)} for c in node.constants
        ],
        "constraints": [{"holds": c.holds.index, "input": c.input} for c in node.constraints],
        "preconditions": [{"holds": c.holds.index} for c in node.preconditions],
        "body": block_to_json(node.body),
        "postconditions": [{"holds": c.holds.index} for c in node.postconditions],
        "invariants": [{"holds": c.holds.index} for c in node.invariants],
        **grants_to_json(node.grants),
    }
    if node.functions:
        form["functions"] = [_function(each) for each in node.functions]
    return _with_list(form, "expressions", [_expression(expression) for expression in expressions])


def _declaration_form(each: Input | Output) -> dict[str, object]:
    return field_to_json(each.name, each.type, record_of((each,)).outside)


def _function(function: Function) -> dict[str, Any]:
    return {
        "name": function.name,
        "params": [{"local": each.local, "type": type_to_json(each.type)} for each in function.parameters],
        "returns": type_to_json(function.returns),
        "max_depth": function.max_depth,
        "value": function.value.index,
    }


def _expression(expression: Expression) -> str:
    """Return one entry of the table."""
    if isinstance(expression, Ref):  # most frequent first
        return f'{{"{expression.kind}":{_quoted(expression.name)}}}'
    if isinstance(expression, Literal):
        return f'{{"literal":{{"type":{_type(expression.type)},"value":{_value(expression.type, expression.value)}}}}}'
    if isinstance(expression, Call):
        args = ",".join([str(each.index) for each in expression.args])
        of = f'"of":[{",".join([_type(each) for each in expression.of])}],' if expression.of else ""
        return f'{{"call":{{"args":[{args}],{of}"op":{_quoted(expression.op)}}}}}'
    if isinstance(expression, If):
        condition, then, otherwise = expression.condition.index, expression.then.index, expression.otherwise.index
        return f'{{"if":{{"condition":{condition},"else":{otherwise},"then":{then}}}}}'
    if isinstance(expression, Logical):
        return f'{{"{expression.kind}":[{expression.left.index},{expression.right.index}]}}'
    return _encode_json(_other_expression(expression))


def _type(type_: Type) -> str:
    return f'"{type_.name}"' if isinstance(type_, Primitive) else _encode_json(type_to_json(type_))


def _value(type_: Type, value: Value) -> str:
    # SEMANTICS: integers and strings are encoded alike in every type; a boolean is no integer.
    if type(value) is int:
        return str(value)
    return _quoted(value) if type(value) is str else _encode_json(to_json(type_, value))


def _other_expression(
    expression: Local | Let | For | Array | RecordValue | Field | Apply | Now | Result,
) -> dict[str, Any]:
    operands = [child.index for child in children(expression)]
    match expression:
        case Local():
            return {"local": expression.number}
        case Let():
            return {"let": {"local": expression.local, "value": operands[0], "body": operands[1]}}
        case For():
            parts = {
                "over": expression.over, "with": expression.with_, "where": expression.where, "key": expression.key,
            }  # fmt: skip
            indices = {name: part.index for name, part in parts.items() if part is not None}
            return {
                "for": {"kind": expression.kind, "locals": list(expression.locals), "value": expression.value.index}
                | indices
            }
        case Array():
            return {"array": {"items": operands, "of": type_to_json(expression.of)}}
        case RecordValue():
            return {"record": {"fields": [{"name": name, "value": value.index} for name, value in expression.fields]}}
        case Field():
            return {"field": {"name": expression.name, "of": operands[0]}}
        case Apply():
            return {"apply": {"function": expression.function, "args": operands}}
        case Now():
            return {"now": type_to_json(expression.type)}
        case Result():
            return {"result": type_to_json(expression.type)}


def _source(node: Node, expressions: list[Expression]) -> str:
    clauses = [clause for _, clauses in node.phases() for clause in clauses]
    form: dict[str, Any] = {
        "path": node.source.path,
        "sha256": node.source.sha256,
        "intent": node.source.intent,
        "steps": {
            s.name: _place(s.place) for s in all_statements(node.body) if not isinstance(s, Return | Raise | Require)
        },
        "clauses": {str(clause.holds.index): clause.text for clause in clauses},
        "locals": _local_names(node, expressions),
    }
    if node.reasons:
        form["reasons"] = {str(index): code for index, code in node.reasons}
    if node.source.parameters:
        form["parameters"] = [_parameter_use(each) for each in node.source.parameters]
    if node.tables:
        form["tables"] = [table_to_json(table) for table in node.tables]
    places = [expression.place for expression in expressions]
    return _with_list(form, "spans", [f"[{p.line},{p.column},{p.end_line},{p.end_column}]" for p in places])


def _parameter_use(use: ParameterUse) -> dict[str, Any]:
    entries = [{"since": since} | _optional_member("reference", reference) for since, reference in use.entries]
    given = _optional_member("unit", use.unit) | _optional_member("reference", use.reference)
    return {"name": use.name, "at": use.at, "entries": entries, **given}


def _optional_member(name: str, value: str | None) -> dict[str, str]:
    return {} if value is None else {name: value}


def _local_names(node: Node, expressions: list[Expression]) -> list[str]:
    names: dict[int, str] = {}
    for function in node.functions:
        names |= {each.local: each.name for each in function.parameters}
    for statement in all_statements(node.body):
        if isinstance(statement, Loop):
            names |= dict(zip(statement.locals, statement.names, strict=True))
            names |= {each.local: each.name for each in statement.state}
    for expression in expressions:
        if isinstance(expression, Let):
            names[expression.local] = expression.name
        elif isinstance(expression, For):
            names |= dict(zip(expression.locals, expression.names, strict=True))
    return [names[number] for number in range(len(names))]


def _place(place: Place) -> list[int]:
    return [place.line, place.column, place.end_line, place.end_column]
