"""Failure codes of statements, which `on_error` may name and which become declared errors."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import handlers_of, leaves, own_blocks
from vesper.values.generated.effects import EFFECTS
from vesper.values.generated.errors import ErrorCode
from vesper.values.generated.operations import OPERATIONS
from vesper.values.types import DECIMAL, FLOAT, INTEGER, STRING, Enum, OptionalOf, Type

HTTP_CODE = re.compile(r"http_(?:[1-5][0-9][0-9]|[45]xx|error)", re.ASCII)
ANY = "any"
CONTRACT_BROKEN = "contract_broken"
_APPLY_CODES = frozenset(("recursion_limit", "too_large", "duplicate_key", "empty_collection")).union(
    *(spec.raises for spec in OPERATIONS.values())
)
"""Codes with which the value of any function can fail."""


def codes_of_expression(expression: ir.Expression) -> set[str]:
    """Return the codes with which the operations of an expression can fail."""
    found: set[str] = set()
    for part in ir.walk(expression):
        if isinstance(part, ir.Call):
            found |= set(OPERATIONS[part.op].raises)
        elif isinstance(part, ir.For):
            found |= _codes_of_for(part.kind, part.value.type)
        elif isinstance(part, ir.Apply):
            found |= _APPLY_CODES
    return found


def _codes_of_for(kind: str, type_: Type) -> set[str]:
    match kind:
        case "sum" | "avg":
            overflow = "integer_overflow" if type_ == INTEGER else "decimal_overflow" if type_ == DECIMAL else ""
            found = {overflow or "time_overflow"} if type_ != FLOAT else set()
            return found | ({"empty_collection"} if kind == "avg" else set())
        case "min" | "max":
            return {"empty_collection"}
        case "map" | "index_by":
            return {"duplicate_key"}
        case "forall" | "exists" | "count" | "fold" | "min_by" | "max_by":
            return set()
        case _:
            return {"too_large"}


def own_codes(statement: ir.Statement, callee_codes: Iterable[str] = ()) -> set[str]:
    """Return the codes with which the statement itself can fail. Handlers and inner blocks are not considered."""
    found: set[str] = set()
    match statement:
        case ir.Step(value=value):
            found = codes_of_expression(value)
        case ir.Request(key=key, arguments=arguments, effect=effect):
            found = set(EFFECTS[effect].codes())
            for expression in (*(value for _, value in arguments), *(() if key is None else (key,))):
                found |= codes_of_expression(expression)
        case ir.CallNode(inputs=inputs):
            found = set(callee_codes)
            for _, value in inputs:
                found |= codes_of_expression(value)
        case ir.Branch(arms=arms, otherwise_value=last):
            parts = [*(arm.when for arm in arms), *(arm.value for arm in arms), last]
            found = set().union(*(codes_of_expression(part) for part in parts if part is not None))
        case ir.Loop():
            parts = [statement.over, statement.where, statement.condition, statement.collect, statement.stop_when]
            parts += [each.value for each in statement.state] + [value for _, value in statement.next]
            found = {"loop_limit", "too_large"}
            found = found.union(*(codes_of_expression(part) for part in parts if part is not None))
        case ir.Return(values) | ir.Raise(values):
            found = found.union(*(codes_of_expression(value) for _, value in values))
        case ir.Require(clause):
            found = codes_of_expression(clause.holds)
    return found


def handles(handler: ir.Handler, code: str) -> bool:
    """Return whether a handler names the code or `any`; earlier handlers are not considered."""
    return code in handler.codes or ANY in handler.codes


def possible_codes(statement: ir.Statement, callees: dict[str, frozenset[str]]) -> set[str]:
    """Return every code that a statement can pass on as a failure."""
    handlers = handlers_of(statement)
    found = own_codes(statement, callees.get(statement.node, ()) if isinstance(statement, ir.CallNode) else ())
    for block in own_blocks(statement):
        found |= possible_codes_in(block, callees)
    left = {code for code in found if not any(handles(h, code) and _ends_failure(h) for h in handlers)}
    for handler in handlers:
        left |= possible_codes_in(handler.body, callees)
        if handler.value is not None:
            left |= codes_of_expression(handler.value)
    return left


def possible_codes_in(block: ir.Block, callees: dict[str, frozenset[str]]) -> set[str]:
    """Return every code that a block can pass on as a failure."""
    return set().union(*(possible_codes(statement, callees) for statement in block))


def _ends_failure(handler: ir.Handler) -> bool:
    """Return whether the failure ends in the handler."""
    return handler.value is not None or leaves(handler.body)


def is_code(text: str) -> bool:
    """Return whether the text has the form of a failure code."""
    return text in set(ErrorCode) or text == ANY or HTTP_CODE.fullmatch(text) is not None


def can_become_declared(node: ir.Node) -> bool:
    """Return whether a failure can become a declared error.

    This requires that the error has no fields but `message` and optional ones.
    """
    return bool(node.errors) and all(
        isinstance(each.type, OptionalOf) or (each.name == "message" and each.type == STRING)
        for each in node.errors[1:]
    )


def declared_failures(node: ir.Node) -> tuple[str, ...]:
    """Return the declared errors that an unhandled failure can become."""
    if not can_become_declared(node):
        return ()
    members = node.errors[0].type.members if isinstance(node.errors[0].type, Enum) else ()
    callees = {each.node: frozenset(callee_codes(each)) for each in node.calls}
    possible = possible_codes_in(node.body, callees)
    return tuple(
        each for each in members if each in possible or (HTTP_CODE.fullmatch(each) and "http_error" in possible)
    )


def callee_codes(callee: ir.Callee) -> set[str]:
    """Return the codes of a call: the callee's declared errors and every run-time code."""
    declared = callee.error[0][1].members if callee.error and isinstance(callee.error[0][1], Enum) else ()
    return {*declared, *(code.value for code in ErrorCode)}
