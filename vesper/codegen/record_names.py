"""Names for the classes of records.

A record has its declared name, else one derived from the value that holds it. Records are structural, so one class
serves all records with equal fields. `plan` holds a `Plan`, an array of records in it is one of `PlanItem`; an
intermediate record is a `PlanGroup`, a `PlanEntry` or a `PlanRow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements, expressions_of, inner_blocks, value_type
from vesper.values.types import ArrayOf, MapOf, OptionalOf, Record, SetOf, Type

_ON_THE_WAY: dict[tuple[str, ...], str] = {("key", "items"): "Group", ("key", "value"): "Entry"}


def choose_record_names(node: ir.Node, fresh: Callable[[str], str]) -> dict[Record, str]:
    """Choose a name for every record of the node; `fresh` makes a proposed name unique."""
    names = _Names(fresh)
    for type_ in _list_types(node):
        names.add_declared(type_)
    for given in node.inputs:
        names.add_held(_to_camel_case(given.name), given.type)
    for statement in all_statements(node.body):
        if isinstance(statement, ir.Return | ir.Raise):
            for name, value in statement.values:
                names.add_held(_to_camel_case(name), value.type)
            continue
        if isinstance(statement, ir.Require):
            continue
        held = value_type(statement)
        if held is not None:
            names.add_held(_to_camel_case(statement.name), held)
    for name, type_ in _list_declarations(node):
        names.add_held(_to_camel_case(name), type_)
    for statement in all_statements(node.body):
        if not isinstance(statement, ir.Return | ir.Raise | ir.Require):
            for expression in _find_own_expressions(statement):
                names.add_met(_to_camel_case(statement.name), expression.type)
    for expression in node.expressions():
        names.add_met("Node", expression.type)
    return names.given


def _find_own_expressions(statement: ir.Statement) -> Iterator[ir.Expression]:
    """Yield the expressions of the statement itself, not those of statements inside of it."""
    inner = {root for block in inner_blocks(statement) for root in map(id, expressions_of(block))}
    for root in expressions_of((statement,)):
        if id(root) not in inner:
            yield from ir.walk(root)


class _Names:
    def __init__(self, fresh: Callable[[str], str]) -> None:
        self.given: dict[Record, str] = {}
        self._fresh = fresh

    def add_declared(self, type_: Type) -> None:
        for record in find_records(type_):
            if record.name is not None:
                self._set_name(record, record.name)

    def add_held(self, name: str, type_: Type) -> None:
        match type_:
            case Record(fields):
                self._set_name(type_, name)
                for field, inner in fields:
                    # The collected records of a loop are named after the loop.
                    self.add_held(name if field == "collected" else name + _to_camel_case(field), inner)
            case ArrayOf(inner) | SetOf(inner):
                self.add_held(f"{name}Item", inner)
            case OptionalOf(inner):
                self.add_held(name, inner)
            case MapOf(_, value):
                self.add_held(f"{name}Value", value)

    def add_met(self, name: str, type_: Type) -> None:
        for record in find_records(type_):
            fields = tuple(field for field, _ in record.fields)
            self._set_name(record, name + _ON_THE_WAY.get(fields, "Row"))

    def _set_name(self, record: Record, name: str) -> None:
        if record not in self.given:
            self.given[record] = self._fresh(name)


def _list_declarations(node: ir.Node) -> list[tuple[str, Type]]:
    return [
        *((each.name, each.type) for each in node.inputs),
        *((each.name, each.type) for each in (*node.outputs, *node.errors)),
        *((each.name, each.type) for each in node.constants),
    ]


def _list_types(node: ir.Node) -> list[Type]:
    return [*(type_ for _, type_ in _list_declarations(node)), *(each.type for each in node.expressions())]


def find_records(type_: Type) -> Iterator[Record]:
    """Yield the records of a type, an outer one before those in it."""
    match type_:
        case Record(fields):
            yield type_
            for _, inner in fields:
                yield from find_records(inner)
        case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner):
            yield from find_records(inner)
        case MapOf(key, value):
            yield from find_records(key)
            yield from find_records(value)


def _to_camel_case(name: str) -> str:
    """Return the name of a step as that of a class: `CallStripeApi` for `call_stripe_api`."""
    return "".join(part.capitalize() for part in name.split("_")) or "Value"
