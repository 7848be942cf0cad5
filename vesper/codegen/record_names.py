"""What the classes of records are called: as the node declares them, else after what holds them.

Records are structural, so one class stands for all that have the same fields. `plan` holds a `Plan`, an array of
records in it is one of `PlanItem`; what is only computed on the way is a `PlanGroup`, a `PlanEntry` or a `PlanRow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements, expressions_of, inner_blocks, value_type
from vesper.values.types import ArrayOf, MapOf, OptionalOf, Record, SetOf, Type

_ON_THE_WAY: dict[tuple[str, ...], str] = {("key", "items"): "Group", ("key", "value"): "Entry"}


def record_names(node: ir.Node, fresh: Callable[[str], str]) -> dict[Record, str]:
    """A name for every record of the node; `fresh` makes one of them that nothing else has."""
    names = _Names(fresh)
    for type_ in _types(node):
        names.declared(type_)
    for given in node.inputs:
        names.held(_camel(given.name), given.type)
    for statement in all_statements(node.body):
        if isinstance(statement, ir.Return | ir.Raise):
            for name, value in statement.values:
                names.held(_camel(name), value.type)
            continue
        if isinstance(statement, ir.Require):
            continue
        held = value_type(statement)
        if held is not None:
            names.held(_camel(statement.name), held)
    for name, type_ in _declarations(node):
        names.held(_camel(name), type_)
    for statement in all_statements(node.body):
        if not isinstance(statement, ir.Return | ir.Raise | ir.Require):
            for expression in _own_expressions(statement):
                names.met(_camel(statement.name), expression.type)
    for expression in node.expressions():
        names.met("Node", expression.type)
    return names.given


def _own_expressions(statement: ir.Statement) -> Iterator[ir.Expression]:
    """Those of the statement itself, not of statements inside of it."""
    inner = {root for block in inner_blocks(statement) for root in map(id, expressions_of(block))}
    for root in expressions_of((statement,)):
        if id(root) not in inner:
            yield from ir.walk(root)


class _Names:
    def __init__(self, fresh: Callable[[str], str]) -> None:
        self.given: dict[Record, str] = {}
        self._fresh = fresh

    def declared(self, type_: Type) -> None:
        for record in records_in(type_):
            if record.name is not None:
                self._give(record, record.name)

    def held(self, name: str, type_: Type) -> None:
        match type_:
            case Record(fields):
                self._give(type_, name)
                for field, inner in fields:
                    # What a loop collects are the items of its value.
                    self.held(name if field == "collected" else name + _camel(field), inner)
            case ArrayOf(inner) | SetOf(inner):
                self.held(f"{name}Item", inner)
            case OptionalOf(inner):
                self.held(name, inner)
            case MapOf(_, value):
                self.held(f"{name}Value", value)

    def met(self, name: str, type_: Type) -> None:
        for record in records_in(type_):
            fields = tuple(field for field, _ in record.fields)
            self._give(record, name + _ON_THE_WAY.get(fields, "Row"))

    def _give(self, record: Record, name: str) -> None:
        if record not in self.given:
            self.given[record] = self._fresh(name)


def _declarations(node: ir.Node) -> list[tuple[str, Type]]:
    return [
        *((each.name, each.type) for each in node.inputs),
        *((each.name, each.type) for each in (*node.outputs, *node.errors)),
        *((each.name, each.type) for each in node.constants),
    ]


def _types(node: ir.Node) -> list[Type]:
    return [*(type_ for _, type_ in _declarations(node)), *(each.type for each in node.expressions())]


def records_in(type_: Type) -> Iterator[Record]:
    """The records of a type, an outer one before those in it."""
    match type_:
        case Record(fields):
            yield type_
            for _, inner in fields:
                yield from records_in(inner)
        case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner):
            yield from records_in(inner)
        case MapOf(key, value):
            yield from records_in(key)
            yield from records_in(value)


def _camel(name: str) -> str:
    """`call_stripe_api` as a class: `CallStripeApi`."""
    return "".join(part.capitalize() for part in name.split("_")) or "Value"
