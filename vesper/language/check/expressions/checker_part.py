"""Interface that the parts of the expression checker share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager

from vesper.language.check.expressions.narrowing import Facts
from vesper.language.check.scope import Scope
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.types import NULL, Record, Type


class CheckerPart:
    """Base of the parts of the expression checker, which `ExpressionChecker` combines."""

    scope: Scope
    bag: DiagnosticBag

    @abstractmethod
    def infer(self, expression: ast.Expression, expected: Type | None) -> ir.Expression | None: ...
    @abstractmethod
    def check(self, expression: ast.Expression, expected: Type) -> ir.Expression | None: ...
    @abstractmethod
    def fit(self, found: ir.Expression, expected: Type, span: Span) -> ir.Expression | None: ...
    @abstractmethod
    def convert(self, found: ir.Expression, expected: Type) -> ir.Expression | None: ...
    @abstractmethod
    def table(self, table: ast.DecisionTable, name: ast.Word, expected: Type | None) -> ir.Expression | None: ...
    @abstractmethod
    def place(self, span: Span) -> ir.Place: ...
    @abstractmethod
    def assuming(self, facts: Facts) -> AbstractContextManager[None]: ...

    def is_bare_null(self, found: ir.Expression, span: Span) -> bool:
        """Return whether a value is a null without a type, and report it."""
        if found.type == NULL:
            self.bag.error(Code.TYPE_MISMATCH, span, expected="a value", found="null")
        return found.type == NULL

    def fresh_local(self) -> int:
        """Return the number of a new local that has no name in the source."""
        self.scope.local_count += 1
        return self.scope.local_count - 1

    def field_help(self, record: ir.Expression, span: Span, fits: Callable[[ir.Expression], bool]) -> str | None:
        """Return the help for a record in the place of its only fitting field, such as the state of a loop."""
        assert isinstance(record.type, Record)
        fields = [ir.Field(record, name, type_, record.place) for name, type_ in record.type.fields]
        fitting, text = [each.name for each in fields if fits(each)], self.bag.source.slice(span)
        if len(fitting) != 1 or not isinstance(record, ir.Ref | ir.Local):
            return None
        return f"`{text}` is a record, as the state of a loop is: write `{text}.{fitting[0]}`"
