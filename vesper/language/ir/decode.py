"""Decoder from canonical bytes to IR. It trusts types, because the bytes come from `encode`; engines verify theirs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from vesper.language.ir.encode import canonical_json
from vesper.language.ir.flow_json import (
    FlowReader,
    callee_from_json,
    grants_from_json,
    machine_from_json,
    statement_forms,
)
from vesper.language.ir.lookup_tables import tables_from_json
from vesper.language.ir.nodes import (
    IR_VERSION,
    REF_KINDS,
    Apply,
    Array,
    Call,
    Clause,
    Constant,
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
    Node,
    Now,
    Output,
    Parameter,
    ParameterUse,
    Place,
    RecordValue,
    Ref,
    Result,
    Source,
    for_type,
    item_types,
)
from vesper.language.ir.tables import table_from_json
from vesper.language.ir.taint import taint_from_json
from vesper.language.ir.type_json import type_from_json
from vesper.values.generated.operations import OPERATIONS
from vesper.values.model import from_json
from vesper.values.types import (
    ArrayOf,
    Record,
    Type,
    declared_type,
    match_declared,
    optional,
    substitute,
)


class IrError(ValueError):
    """An error in bytes that are not a canonical IR document of this version."""


def decode(data: bytes) -> Node:
    """Return the node of bytes written by `encode`.

    Raises `IrError` for other bytes. Types are trusted; only engines verify documents from elsewhere.
    """
    try:
        document = json.loads(data)
    except ValueError as error:
        raise IrError(f"not JSON: {error}") from error
    if canonical_json(document) != data:
        raise IrError("not in canonical form")
    if document.get("ir_version") != IR_VERSION:
        raise IrError(f"format version {document.get('ir_version')!r}; this Vesper reads {IR_VERSION}")
    try:
        node = _Reader(document["semantics"], document["source"]).node()
        node = replace(node, lookup_tables=tables_from_json(document.get("tables", {})))
        return replace(node, taint=taint_from_json(document["taint"])) if "taint" in document else node
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise IrError(f"not an IR document: {error!r}") from error


def _parameter_uses(source: dict[str, Any]) -> tuple[ParameterUse, ...]:
    return tuple(
        ParameterUse(
            each["name"],
            each.get("unit"),
            each.get("reference"),
            tuple((entry["since"], entry.get("reference")) for entry in each["entries"]),
            each["at"],
        )
        for each in source.get("parameters", ())
    )


class _Reader:
    """Rebuilds the trees in one pass, since operands come before their users."""

    def __init__(self, semantics: dict[str, Any], source: dict[str, Any]) -> None:
        self._semantics = semantics
        self._source = source
        self._types: dict[tuple[str, str], Type] = {}
        self._table: list[Expression] = []
        self._binders: dict[int, tuple[int, int | None]] = {}
        """Binder of each local: index of its value, and position in a `for`. The position is None for a `let`."""
        self._parameters: dict[int, Type] = {}
        """Types of the parameters of functions, by local."""
        self._returns: dict[str, Type] = {}
        self._steps: dict[str, tuple[str, dict[str, Any]]] = {}
        self._first_invariant = 0
        self._has_errors = False

    def node(self) -> Node:
        semantics = self._semantics
        inputs = tuple(self._input(entry) for entry in semantics["inputs"])
        outputs = tuple(_output(form) for form in semantics["outputs"]["success"])
        constants = tuple(self._constant(entry) for entry in semantics["constants"])
        errors = tuple(_output(form) for form in semantics["outputs"]["error"])
        for kind, declared in (("input", inputs), ("output", outputs), ("constant", constants), ("error", errors)):
            self._types |= {(kind, each.name): each.type for each in declared}
        statements = statement_forms(semantics["body"])
        self._steps = {body["name"]: (kind, body) for kind, body in statements if "name" in body}
        functions = semantics.get("functions", [])
        self._parameters = {
            each["local"]: type_from_json(each["type"]) for form in functions for each in form["params"]
        }
        self._returns = {form["name"]: type_from_json(form["returns"]) for form in functions}
        self._find_binders(semantics["expressions"], statements)
        # Expressions after the postconditions belong to invariants, in which outputs and errors may be missing.
        self._first_invariant = _first_invariant(semantics)
        self._has_errors = bool(errors)
        for index, form in enumerate(semantics["expressions"]):
            self._table.append(self._expression(index, form))
        source = Source(
            self._source["path"], self._source["sha256"], self._source["intent"], _parameter_uses(self._source)
        )
        return Node(
            node_id=semantics["node_id"],
            type=semantics["type"],
            inputs=inputs,
            outputs=outputs,
            constants=constants,
            constraints=self._clauses("constraints"),
            preconditions=self._clauses("preconditions"),
            body=FlowReader(self._table, self._source).block(semantics["body"]),
            postconditions=self._clauses("postconditions"),
            source=source,
            errors=errors,
            machines=tuple(machine_from_json(form) for form in semantics["machines"]),
            calls=tuple(callee_from_json(form) for form in semantics["calls"]),
            invariants=self._clauses("invariants"),
            grants=grants_from_json(semantics),
            functions=tuple(self._function(form) for form in functions),
            tables=tuple(table_from_json(form) for form in self._source.get("tables", ())),
            reasons=tuple(sorted((int(index), code) for index, code in self._source.get("reasons", {}).items())),
        )

    def _function(self, form: dict[str, Any]) -> Function:
        names = self._source["locals"]
        parameters = tuple(
            Parameter(each["local"], names[each["local"]], self._parameters[each["local"]]) for each in form["params"]
        )
        value = self._table[form["value"]]
        return Function(form["name"], parameters, self._returns[form["name"]], form["max_depth"], value)

    def _input(self, form: dict[str, Any]) -> Input:
        type_ = type_from_json(form["type"])
        default = from_json(type_, form["default"]) if "default" in form else None
        return Input(form["name"], type_, default, form.get("as"), form.get("absent"))

    def _constant(self, form: dict[str, Any]) -> Constant:
        type_ = type_from_json(form["type"])
        return Constant(form["name"], type_, from_json(type_, form["value"]))

    def _expression(self, index: int, form: dict[str, Any]) -> Expression:
        place = Place(*self._source["spans"][index])
        ((kind, body),) = form.items()
        if kind == "literal":
            type_ = type_from_json(body["type"])
            return Literal(type_, from_json(type_, body["value"]), place, index)
        if kind == "now":
            return Now(place, index)
        if kind == "result":
            return Result(type_from_json(body), place, index)
        if kind in REF_KINDS:
            type_ = self._step_type(body) if kind == "step" else self._types[kind, body]
            if kind in ("output", "error") and self._has_errors and index >= self._first_invariant:
                type_ = optional(type_)
            return Ref(kind, body, type_, place, index)
        if kind == "call":
            args = tuple(self._table[argument] for argument in body["args"])
            of = tuple(type_from_json(type_) for type_ in body.get("of", ()))
            return Call(body["op"], of, args, _result_type(body["op"], of, args), place, index)
        if kind == "if":
            condition, then, otherwise = (self._table[body[part]] for part in ("condition", "then", "else"))
            return If(condition, then, otherwise, then.type, place, index)
        if kind in ("and", "or"):
            left, right = (self._table[operand] for operand in body)
            return Logical(kind, left, right, place, index)
        return self._collection(kind, body, place, index)

    def _collection(self, kind: str, body: Any, place: Place, index: int) -> Expression:
        match kind:
            case "local":
                return Local(body, self._source["locals"][body], self._local_type(body), place, index)
            case "let":
                value = self._table[body["value"]]
                return Let(
                    body["local"], self._source["locals"][body["local"]], value, self._table[body["body"]], place, index
                )
            case "array":
                items = tuple(self._table[item] for item in body["items"])
                return Array(items, type_from_json(body["of"]), place, index)
            case "record":
                fields = tuple((each["name"], self._table[each["value"]]) for each in body["fields"])
                return RecordValue(fields, place, index)
            case "apply":
                args = tuple(self._table[argument] for argument in body["args"])
                return Apply(body["function"], args, self._returns[body["function"]], place, index)
            case "field":
                of = self._table[body["of"]]
                assert isinstance(of.type, Record)
                type_ = of.type.field(body["name"])
                assert type_ is not None
                return Field(of, body["name"], type_, place, index)
            case _:
                return self._for(body, place, index)

    def _find_binders(self, forms: list[dict[str, Any]], statements: list[tuple[str, dict[str, Any]]]) -> None:
        """Record the binder of each local. Locals are used before the row that binds them."""
        for kind, body in statements:
            if kind == "loop":
                for position, number in enumerate(body["locals"]):
                    self._binders[number] = (body["over"], position)
                for each in body["state"]:
                    self._binders[each["local"]] = (each["value"], None)
        for form in forms:
            if "let" in form:
                self._binders[form["let"]["local"]] = (form["let"]["value"], None)
            elif "for" in form:
                numbers = list(form["for"]["locals"])
                if form["for"]["kind"] == "fold":
                    self._binders[numbers.pop()] = (form["for"]["with"], None)
                for position, number in enumerate(numbers):
                    self._binders[number] = (form["for"]["over"], position)

    def _local_type(self, number: int) -> Type:
        if number in self._parameters:
            return self._parameters[number]
        index, position = self._binders[number]
        bound = self._table[index].type
        return bound if position is None else item_types(bound)[position]

    def _for(self, body: Any, place: Place, index: int) -> Expression:
        over, value = self._table[body["over"]], self._table[body["value"]]
        where = self._table[body["where"]] if "where" in body else None
        key = self._table[body["key"]] if "key" in body else None
        with_ = self._table[body["with"]] if "with" in body else None
        numbers = tuple(body["locals"])
        names = tuple(self._source["locals"][number] for number in numbers)
        type_ = for_type(body["kind"], key, value, over.type)
        return For(body["kind"], numbers, names, over, where, key, value, type_, place, index, with_)

    def _clauses(self, phase: str) -> tuple[Clause, ...]:
        return tuple(
            Clause(self._table[form["holds"]], self._source["clauses"][str(form["holds"])], form.get("input"))
            for form in self._semantics[phase]
        )

    def _step_type(self, name: str) -> Type:
        """Return the type of a step's value. The table already contains its parts."""
        if ("step", name) not in self._types:
            kind, body = self._steps[name]
            self._types["step", name] = self._value_type(kind, body)
        return self._types["step", name]

    def _value_type(self, kind: str, body: dict[str, Any]) -> Type:
        match kind:
            case "step":
                return self._at(body["value"]).type
            case "branch":
                values: list[int] = [arm["value"] for arm in body["arms"] if "value" in arm]
                values += [body["otherwise"]] if "otherwise" in body else []
                return self._table[values[0]].type
            case "loop":
                fields = tuple((each["name"], self._table[each["value"]].type) for each in body["state"])
                if "collect" in body:
                    fields += (("collected", ArrayOf(self._table[body["collect"]].type)),)
                return Record(fields)
            case _:
                return self._at(body["result"]).type

    def _at(self, index: int) -> Expression:
        return self._table[index]


def _output(form: dict[str, Any]) -> Output:
    return Output(form["name"], type_from_json(form["type"]), form.get("as"), form.get("absent"))


def _first_invariant(semantics: dict[str, Any]) -> int:
    """Return the index of the first expression that belongs to an invariant."""
    ends = [clause["holds"] for clause in semantics["postconditions"]]
    if ends:
        return int(ends[-1]) + 1
    invariants = [clause["holds"] for clause in semantics["invariants"]]
    if not invariants:
        return len(semantics["expressions"])
    forms = semantics["expressions"]
    # The subtree of the first invariant begins at its leftmost operand.
    index = int(invariants[0])
    while True:
        operands = _operands(forms[index])
        if not operands:
            return index
        index = min(operands)


def _operands(form: dict[str, Any]) -> list[int]:
    ((kind, body),) = form.items()
    match kind:
        case "call" | "apply":
            return list(body["args"])
        case "and" | "or":
            return list(body)
        case "array":
            return list(body["items"])
        case "record":
            return [each["value"] for each in body["fields"]]
        case "if" | "let" | "for" | "field":
            names = ("condition", "then", "else", "value", "body", "over", "where", "key", "with", "of")
            return [body[name] for name in names if name in body and isinstance(body[name], int)]
        case _:
            return []


def _result_type(op: str, of: tuple[Type, ...], args: tuple[Expression, ...]) -> Type:
    spec = OPERATIONS[op]
    bindings = dict(zip((name for name, _ in spec.type_params), of, strict=True))
    for (_, pattern), argument in zip(spec.params, args, strict=True):
        match_declared(declared_type(pattern), argument.type, bindings)
    return substitute(declared_type(spec.returns), bindings)
