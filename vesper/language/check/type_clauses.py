"""Clauses that the node's own types put on values. They apply to inputs, outputs, typed steps and results of CAST.

`items: array<Line>` yields `FORALL item IN items SATISFIES item.qty > 0`. Types have no names in the IR, so the clauses
are built from the type texts. Clauses of inner types come before those of outer types.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vesper.language.check.constraints import constraint_clause
from vesper.language.check.expressions.checker import ExpressionChecker, place_of
from vesper.language.check.expressions.relocate import relocate
from vesper.language.check.libraries import Library
from vesper.language.check.named_types import TypeResolver
from vesper.language.check.scope import Scope
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.types import BOOLEAN, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type


@dataclass(frozen=True, slots=True)
class _TypedValue:
    """A value of a declared type, and its name in clause texts."""

    value: ir.Expression
    shown: str


def type_clauses(
    input_: ast.Input, type_: Type, types: TypeResolver, checker: ExpressionChecker
) -> list[ir.Clause | None]:
    """Return the clauses of every declared type inside the type of an input."""
    place = place_of(checker.bag.source, input_.name.span)
    value = ir.Ref("input", input_.name.text, type_, place)
    return [
        None if clause is None else replace(clause, input=input_.name.text)
        for clause in value_clauses(value, input_.name.text, input_.type, types, checker)
    ]


def value_clauses(
    value: ir.Expression, shown: str, text: ast.TypeText, types: TypeResolver, checker: ExpressionChecker
) -> list[ir.Clause | None]:
    """Return the clauses that the declared types in a type text put on a value.

    The value has the type of the text, or is an optional or an array of that type.
    """
    clauses = _ClauseBuilder(types, checker)
    held = _TypedValue(value, shown)
    if not types.has_constraints(text):
        return []
    if value.type == types.resolve(text):
        return clauses.build(held, text)
    match value.type:
        case OptionalOf(inner):
            return clauses.optional_clauses(held, inner, text)
        case ArrayOf():
            return clauses.item_clauses(held, ("item",), 0, text)
        case _:
            raise AssertionError(f"{value.type} holds nothing of the type that its text names")


class _ClauseBuilder:
    """Builds clauses along a type text, from the innermost type outwards."""

    def __init__(self, types: TypeResolver, checker: ExpressionChecker) -> None:
        self._types = types
        self._checker = checker

    def build(self, held: _TypedValue, text: ast.TypeText) -> list[ir.Clause | None]:
        library = self._types.library_of(text)
        if library is not None:
            return self._library_clauses(held, text, library)
        declared = self._types.declaration(text)
        if isinstance(declared, ast.NamedType):
            return [*self.build(held, declared.type), *(self._own_clause(held, each) for each in declared.constraints)]
        if declared is not None:
            return self._record_clauses(held, declared)
        if isinstance(text, ast.TypeApplied):
            return self._applied_clauses(held, text)
        return []

    def _library_clauses(self, held: _TypedValue, text: ast.TypeText, library: Library) -> list[ir.Clause | None]:
        """Return the clauses of a library's type, placed at the value.

        They are checked among the definitions of the library.
        """
        outer = self._checker
        scope = Scope(local_count=outer.scope.local_count)
        checker = ExpressionChecker(scope, DiagnosticBag(library.source), library.types)
        checker.functions = dict(library.functions)
        checker.library_id = library.library_id
        found = _ClauseBuilder(library.types, checker).build(held, text)
        outer.scope.local_count = scope.local_count
        moved: list[ir.Clause | None] = []
        for clause in found:
            if clause is None:
                return [None]
            outer.count_inlined(len(ir.walk(clause.holds)), text.span)
            moved.append(replace(clause, holds=relocate(clause.holds, held.value.place)))
        return moved

    def _own_clause(self, held: _TypedValue, constraint: ast.Constraint | ast.Clause) -> ir.Clause | None:
        if isinstance(constraint, ast.Constraint):
            return constraint_clause(constraint, held.value, held.shown, self._checker.bag)
        names = {"value": held.value.type}
        holds = self._checker.over_parts(constraint.holds, lambda _: held.value, names)
        return None if holds is None else ir.Clause(holds, constraint.text)

    def _record_clauses(self, held: _TypedValue, declared: ast.RecordType) -> list[ir.Clause | None]:
        value = held.value
        assert isinstance(value.type, Record)
        fields = dict(value.type.fields)
        found: list[ir.Clause | None] = []
        for field in declared.fields:
            name = field.name.text
            inner = _TypedValue(ir.Field(value, name, fields[name], value.place), name)
            found += self.build(inner, field.type)

        def part(name: str) -> ir.Expression:
            return ir.Field(value, name, fields[name], value.place)

        for clause in declared.constraints:
            holds = self._checker.over_parts(clause.holds, part, fields)
            found.append(None if holds is None else ir.Clause(holds, clause.text))
        return found

    def _applied_clauses(self, held: _TypedValue, text: ast.TypeApplied) -> list[ir.Clause | None]:
        match held.value.type:
            case OptionalOf(inner):
                return self.optional_clauses(held, inner, text.arguments[0])
            case ArrayOf() | SetOf():
                return self.item_clauses(held, ("item",), 0, text.arguments[0])
            case MapOf():
                keys = self.item_clauses(held, ("key",), 0, text.arguments[0])
                return [*keys, *self.item_clauses(held, ("key", "item"), 1, text.arguments[1])]
            case _:
                raise AssertionError(f"{held.value.type} is made of nothing")

    def optional_clauses(self, held: _TypedValue, inner: Type, text: ast.TypeText) -> list[ir.Clause | None]:
        """Return each clause of the value as `value IS NULL OR …`."""
        value = held.value
        known = ir.Call("optional.unwrap", (inner,), (value,), inner, value.place)
        found: list[ir.Clause | None] = []
        for clause in self.build(_TypedValue(known, held.shown), text):
            if clause is None:
                return [None]
            is_null = ir.Call("optional.is_null", (inner,), (value,), BOOLEAN, clause.holds.place)
            holds = ir.Logical("or", is_null, clause.holds, clause.holds.place)
            found.append(replace(clause, holds=holds))
        return found

    def item_clauses(
        self, held: _TypedValue, names: tuple[str, ...], position: int, text: ast.TypeText
    ) -> list[ir.Clause | None]:
        """Return each clause of the items as a FORALL over the collection."""
        value = held.value
        numbers = tuple(self._checker.fresh_local() for _ in names)
        type_ = ir.item_types(value.type)[position]
        item = _TypedValue(ir.Local(numbers[position], names[position], type_, value.place), names[position])
        found: list[ir.Clause | None] = []
        for clause in self.build(item, text):
            if clause is None:
                return [None]
            # Clauses share local numbers here; numbering the node gives each `for` its own.
            holds = ir.For("forall", numbers, names, value, None, None, clause.holds, BOOLEAN, clause.holds.place)
            found.append(replace(clause, holds=holds))
        return found
