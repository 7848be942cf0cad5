"""What a node says about itself: IR in, text and lists out. Nothing is read from disk and nothing is printed."""

from __future__ import annotations

from collections.abc import Iterable

from vesper.ir.nodes import Call, Constant, Input, Node, Output, Step
from vesper.spec.types import ArrayOf, MapOf, OptionalOf, Record, SetOf, Type


def signature(inputs: Iterable[tuple[str, str]], outputs: Iterable[tuple[str, str]]) -> str:
    """What goes in and what comes out, on one line, from names and types."""
    return f"({_listed(inputs)}) → ({_listed(outputs)})"


def _listed(declared: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {type_}" for name, type_ in declared)


def operations(node: Node) -> dict[str, int]:
    """The operations that a node uses, by name, and at how many places."""
    used = [expression.op for expression in node.expressions() if isinstance(expression, Call)]
    return {op: used.count(op) for op in sorted(set(used))}


def record_types(node: Node) -> dict[str, Record]:
    """The records that inputs, outputs, constants and steps are made of, by the names that the node gives them."""
    found: dict[str, Record] = {}
    declared: tuple[Input | Output | Constant, ...] = (*node.inputs, *node.outputs, *node.constants)
    for each in declared:
        _collect(each.type, found)
    for statement in node.body:
        if isinstance(statement, Step):
            _collect(statement.value.type, found)
    return found


def _collect(type_: Type, found: dict[str, Record]) -> None:
    match type_:
        case Record(fields, name):
            for _, field in fields:
                _collect(field, found)
            if name is not None:
                found.setdefault(name, type_)
        case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner):
            _collect(inner, found)
        case MapOf(key, value):
            _collect(key, found)
            _collect(value, found)


def dependencies(node: Node) -> tuple[str, ...]:
    """The ids of the nodes that this one calls: none, because the IR has no call of a node."""
    del node
    return ()


def capabilities(node: Node) -> tuple[str, ...]:
    """What a node must be granted to run: nothing, because the IR has no effects."""
    del node
    return ()
