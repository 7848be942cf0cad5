"""The element at which a broken clause fails: `FORALL line IN lines: line.qty > 0` fails at `lines[7]`.

Engines report the values that a clause mentions, so a broken quantifier has whole collections. When its message is
read, parts of the clause are evaluated on these values, as small nodes on the python engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from vesper.compiler import Compiled
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import encode_and_hash
from vesper.values.model import in_order
from vesper.values.types import BOOLEAN, ArrayOf, MapOf, SetOf, Type

_NO_PLACE = ir.Place(1, 1, 1, 1)
_TRUE = ir.Literal(BOOLEAN, True, _NO_PLACE)
_FALSE = ir.Literal(BOOLEAN, False, _NO_PLACE)


@dataclass(frozen=True, slots=True)
class BrokenElement:
    """An element of a collection that a clause quantifies over."""

    root: str | None
    """The mentioned name that holds the collection; None for a collection that the clause computes."""
    path: str
    """`lines[7]`, or `lines[7].parts[2]` for nested quantifiers."""
    value: Any


class _UnknownValue(Exception):
    """Raised where a part of the clause cannot be evaluated."""


@dataclass(frozen=True, slots=True)
class _Bound:
    type: Type
    value: Any
    path: str | None
    """The path in messages; None for a value that has none."""
    root: str | None


def broken_element(node: ir.Node, clause: ir.Clause, values: Mapping[str, Any]) -> BrokenElement | None:
    """Return the first collection element that breaks a clause.

    None if no single element does, or if a part of the clause cannot be evaluated.
    """
    names: dict[str, _Bound] = {}
    for each in node.constants:
        names[f"constant {each.name}"] = _Bound(each.type, each.value, each.name, each.name)
    for ref in ir.mentioned_refs(clause):
        name = ref.name.lstrip("_")
        names[f"{ref.kind} {ref.name}"] = _Bound(ref.type, values.get(name), name, name)
    try:
        return _search(clause.holds, False, names)
    except _UnknownValue:
        return None


def _search(expression: ir.Expression, result: bool, names: Mapping[str, _Bound]) -> BrokenElement | None:
    """Return the collection element that gives an expression this result."""
    match expression:
        case ir.Call("boolean.not", _, (inner,)):
            return _search(inner, not result, names)
        case ir.Logical(kind, left, right) if (kind == "and") is result:
            # Both have the result. The right one is the consequence of an implication.
            return _search(right, result, names) or _search(left, result, names)
        case ir.Logical(_, left, right):
            return _search(left if _evaluate(left, names) is result else right, result, names)
        case ir.Let(local, _, value, body):
            known = _Bound(value.type, _evaluate(value, names), None, None)
            return _search(body, result, {**names, f"local {local}": known})
        case ir.For("forall" | "exists" as kind) if (kind == "exists") is result:
            return _element(expression, result, names)
        case _:
            return None


def _element(loop: ir.For, result: bool, names: Mapping[str, _Bound]) -> BrokenElement | None:
    over = _evaluate(loop.over, names)
    root, path = _path(loop.over, names)
    items: list[Any] = over if isinstance(over, list) else in_order(_key_type(loop.over.type), over)
    place = _first(loop, result, names, over)
    if place is None:
        return None
    item = items[place]
    if isinstance(over, dict):
        bound, shown = (item, over[item]), f"{path}[{item!r}]"
    else:
        bound, shown = (item, place), f"{path}[{place}]" if isinstance(over, list) else f"a member of {path}"
    inner = dict(names)
    for number, value, type_ in zip(loop.locals, bound, _item_types(loop.over.type), strict=False):
        inner[f"local {number}"] = _Bound(type_, value, shown, root)
    deeper = _search(loop.value, result, inner)
    if deeper is not None and deeper.root == root:
        return deeper
    return BrokenElement(root, shown, bound[1] if isinstance(over, dict) else item)


def _first(loop: ir.For, result: bool, names: Mapping[str, _Bound], over: Any) -> int | None:
    """Return the position of the first item with this result. Later items may fail, and were not evaluated."""
    otherwise = _FALSE if result else _TRUE
    value = loop.value if loop.where is None else ir.If(loop.where, loop.value, otherwise, BOOLEAN, _NO_PLACE)
    collection = ir.Ref("input", "collection", loop.over.type, _NO_PLACE)
    every = replace(loop, kind="array", over=collection, where=None, value=value, type=ArrayOf(BOOLEAN))
    run = _program(every, {**names, "input collection": _Bound(loop.over.type, over, None, None)})

    def position(length: int) -> int | None:
        found = run({"collection": over[:length] if isinstance(over, list) else over})
        return found.index(result) if result in found else None

    try:
        return position(len(over))
    except _UnknownValue:
        if not isinstance(over, list):
            raise
    low, high = 0, len(over)  # `low` items can be evaluated, `high` items cannot
    while high - low > 1:
        middle = (low + high) // 2
        try:
            found = position(middle)
        except _UnknownValue:
            high = middle
        else:
            if found is not None:
                return found
            low = middle
    return None


def _path(expression: ir.Expression, names: Mapping[str, _Bound]) -> tuple[str | None, str]:
    """Return the mentioned name that holds a collection, and the path to it."""
    match expression:
        case ir.Field(of, name):
            root, path = _path(of, names)
            return root, f"{path}.{name}"
        case ir.Ref() | ir.Local():
            known = names.get(_name(expression))
            if known is not None and known.path is not None:
                return known.root, known.path
    return None, "the collection"


def _item_types(type_: Type) -> tuple[Type, ...]:
    match type_:
        case MapOf(key, value):
            return key, value
        case ArrayOf(item) | SetOf(item):
            return (item,)
        case _:
            raise _UnknownValue


def _key_type(type_: Type) -> Type:
    return _item_types(type_)[0]


# -- evaluation -----------------------------------------------------------------------------------


def _name(expression: ir.Ref | ir.Local) -> str:
    if isinstance(expression, ir.Local):
        return f"local {expression.number}"
    return f"{expression.kind} {expression.name}"


def _evaluate(expression: ir.Expression, names: Mapping[str, _Bound]) -> Any:
    """Return the value of a part of the clause."""
    match expression:
        case ir.Ref() | ir.Local() if _name(expression) in names:
            return names[_name(expression)].value
        case _:
            return _program(expression, names)({})


def _program(expression: ir.Expression, names: Mapping[str, _Bound]) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function that evaluates an expression; its argument replaces inputs by name."""
    own = {number for part in ir.walk(expression) for number in _locals_of(part)}
    given: dict[str, _Bound] = {}

    def replaced(part: ir.Expression) -> ir.Expression:
        if isinstance(part, ir.Now | ir.Result):
            raise _UnknownValue
        if not isinstance(part, ir.Ref | ir.Local) or (isinstance(part, ir.Local) and part.number in own):
            return part
        known = names.get(_name(part))
        if known is None:
            raise _UnknownValue
        name = "collection" if _name(part) == "input collection" else _name(part).replace(" ", "_")
        given[name] = known
        return ir.Ref("input", name, known.type, part.place)

    body = _rebuild(expression, replaced)
    node = ir.number_expressions(
        ir.Node(
            node_id="clause_v1",
            type="function",
            inputs=tuple(ir.Input(name, each.type, None) for name, each in given.items()),
            outputs=(ir.Output("value", body.type),),
            constants=(),
            constraints=(),
            preconditions=(),
            body=(ir.Return((("value", body),)),),
            postconditions=(),
            source=ir.Source("clause", SourceFile("clause", "").sha256, "part of a clause"),
        )
    )
    written = encode_and_hash(node)
    if written is None:
        raise _UnknownValue
    program = ENGINES["python"].load(Compiled(SourceFile("clause", ""), node, (), *written, ()))

    def run(changed: Mapping[str, Any]) -> Any:
        outcome = program.call({**{name: each.value for name, each in given.items()}, **changed})
        if not isinstance(outcome, Returned):
            raise _UnknownValue
        return outcome.value["value"]

    return run


def _locals_of(part: ir.Expression) -> tuple[int, ...]:
    return part.locals if isinstance(part, ir.For) else (part.local,) if isinstance(part, ir.Let) else ()


def _rebuild(expression: Any, change: Callable[[ir.Expression], ir.Expression]) -> Any:
    """Return the expression with every part changed, the innermost first."""
    if isinstance(expression, tuple):
        return tuple(_rebuild(each, change) for each in expression)
    if not isinstance(expression, ir.Expression):
        return expression
    parts = {each.name: getattr(expression, each.name) for each in fields(expression) if each.init}
    return change(replace(expression, **{name: _rebuild(part, change) for name, part in parts.items()}))
