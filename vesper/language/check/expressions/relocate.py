"""Relocation of inlined expressions to the place of their call.

A definition of a library, or a called node, is in another file. Messages, the debugger and the source map know one file
for each node, so its expressions get the place of the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from vesper.language.check.tables.lowered import LoweredRow, LoweredTable
from vesper.language.ir import nodes as ir


def relocate(expression: ir.Expression, place: ir.Place) -> ir.Expression:
    """Return the expression with this place in all of its parts."""
    return Relocation(place).move(expression)


@dataclass(frozen=True, slots=True)
class Relocation:
    """Relocates expressions to one place, with new names and locals."""

    place: ir.Place
    names: Mapping[tuple[str, str], ir.Expression] = field(default_factory=dict)
    """Expressions in place of references, by kind and name."""
    shift: int = 0
    """Added to the number of each local."""

    moved: dict[int, list[ir.Expression]] | None = None
    """Moved expressions by the `id` of the original, which may occur several times; None to keep none."""

    def move(self, expression: ir.Expression) -> ir.Expression:
        """Return the expression with the new place, names and locals."""
        found = self._move(expression)
        if self.moved is not None:
            self.moved.setdefault(id(expression), []).append(found)
        return found

    def move_tables(self, tables: Iterable[LoweredTable]) -> list[LoweredTable]:
        """Return the tables of moved expressions, once for each occurrence."""
        moved = self.moved or {}

        def at(original: ir.Expression, number: int) -> ir.Expression:
            return moved[id(original)][number]

        found: list[LoweredTable] = []
        for table in tables:
            for number in range(len(moved.get(id(table.rows[0].value), ()))):
                rows = tuple(
                    LoweredRow(
                        replace(row.source, line=self.place.line),
                        None if row.condition is None else at(row.condition, number),
                        at(row.value, number),
                    )
                    for row in table.rows
                )
                found.append(replace(table, rows=rows))
        return found

    def _move(self, expression: ir.Expression) -> ir.Expression:
        place = self.place
        match expression:
            case ir.Ref(kind, name) if (kind, name) in self.names:
                return replace(self.names[kind, name], place=place)
            case ir.Local(number, name, type_):
                return ir.Local(number + self.shift, name, type_, place)
            case ir.Call(op, of, args, type_):
                return ir.Call(op, of, tuple(map(self.move, args)), type_, place)
            case ir.If(condition, then, otherwise, type_):
                return ir.If(self.move(condition), self.move(then), self.move(otherwise), type_, place)
            case ir.Logical(kind, left, right):
                return ir.Logical(kind, self.move(left), self.move(right), place)
            case ir.Let(local=local, value=value, body=body):
                return replace(
                    expression, local=local + self.shift, value=self.move(value), body=self.move(body), place=place
                )
            case ir.For(over=over, where=where, key=key, value=value, with_=with_):
                return replace(
                    expression,
                    locals=tuple(number + self.shift for number in expression.locals),
                    over=self.move(over),
                    where=self._move_or_none(where),
                    key=self._move_or_none(key),
                    value=self.move(value),
                    with_=self._move_or_none(with_),
                    place=place,
                )
            case ir.Array(items, of):
                return ir.Array(tuple(map(self.move, items)), of, place)
            case ir.RecordValue(fields=fields):
                moved = tuple((name, self.move(value)) for name, value in fields)
                return replace(expression, fields=moved, place=place)
            case ir.Apply(args=args):
                return replace(expression, args=tuple(map(self.move, args)), place=place)
            case ir.Field(of, name, type_):
                return ir.Field(self.move(of), name, type_, place)
            case _:
                return replace(expression, place=place)

    def _move_or_none(self, part: ir.Expression | None) -> ir.Expression | None:
        return None if part is None else self.move(part)
