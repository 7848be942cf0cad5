"""Interface that the parts of the expression checker share."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager

from vesper.language.check.expressions.narrowing import Facts
from vesper.language.check.scope import Scope
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.types import NULL, Type


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
