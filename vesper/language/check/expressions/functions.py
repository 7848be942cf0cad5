"""Functions of a node: checked once at their declaration, and inlined at each call.

`line_total(line, rate)` becomes `LET line = …, rate = … IN` followed by the function's value: arguments are evaluated
once, in written order. A function may use constants and functions above it, so recursion is impossible and inlining
ends. Its total size is bounded, because nested calls grow exponentially.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from vesper.language.check.expressions.binders import Binders, with_array
from vesper.language.check.expressions.narrowing import NOTHING, Facts
from vesper.language.check.expressions.operations import operations_named
from vesper.language.check.scope import Scope
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, Label
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.types import Type

MAX_INLINED = 16_384
"""Maximum number of expressions that inlined calls add to a node. Calls inside its functions count."""
MAX_DEPTH = 200


@dataclass(slots=True)
class NodeFunction:
    """A function without errors."""

    name: ast.Word
    parameters: tuple[tuple[int, str, Type], ...]
    """Number, name and type of each parameter."""
    body: ir.Expression
    size: int
    used: bool = False

    def usage(self) -> str:
        """Return the signature for messages."""
        return f"{self.name.text}({', '.join(f'{name}: {type_}' for _, name, type_ in self.parameters)})"


class NodeFunctions(Binders):
    """The part of the expression checker for the node's own functions."""

    known: Facts
    functions: dict[str, NodeFunction | None]
    """Callable functions by name; None for a faulty one, whose calls are not reported."""
    functions_below: dict[str, ast.Word]
    """Functions declared further down, and the one being checked."""
    _inlined = 0

    def declare_function(
        self, declared: ast.Function, parameters: list[tuple[ast.Word, Type | None]], returns: Type | None
    ) -> None:
        """Check a function and make it callable below its declaration."""
        name = declared.name
        if operations_named(name.text):
            self.bag.warning(Code.HIDDEN_FUNCTION, name.span, name=name.text)
        body, numbers = self._body(declared, parameters, returns)
        del self.functions_below[name.text]
        known = tuple((numbers[word.text], word.text, type_) for word, type_ in parameters if type_ is not None)
        if body is None or returns is None or len(known) < len(parameters):
            self.functions[name.text] = None
            return
        if ir.depth(body) > MAX_DEPTH:
            self.bag.error(Code.TOO_DEEP, name.span, limit=MAX_DEPTH, what="nesting in this function")
            self.functions[name.text] = None
            return
        self.functions[name.text] = NodeFunction(name, known, body, len(ir.walk(body)))

    def _body(
        self, declared: ast.Function, parameters: list[tuple[ast.Word, Type | None]], returns: Type | None
    ) -> tuple[ir.Expression | None, dict[str, int]]:
        """Return the value of a function and the numbers of its parameters.

        The value may use constants and parameters only.
        """
        outer, known = self.scope, self.known
        constants = {name: found for name, found in outer.names.items() if found.kind == "constant"}
        self.scope = Scope(names=constants, local_count=outer.local_count, in_function=True)
        self.known = NOTHING
        try:
            with ExitStack() as bound:
                locals_ = [bound.enter_context(self.scope.bind(word, type_, self.bag)) for word, type_ in parameters]
                body = self.infer(declared.value, None) if returns is None else self.check(declared.value, returns)
        finally:
            outer.local_count = self.scope.local_count
            self.scope, self.known = outer, known
        return body, {local.name: local.number for local in locals_}

    def own_call(self, expression: ast.Call) -> ir.Expression | None:
        """Return the inlined call of a node function, with its arguments bound around it."""
        name = expression.function
        below = self.functions_below.get(name.text)
        if below is not None:
            first = next(iter(self.functions_below))  # the function being checked
            what = "itself" if name.text == first else f"`{name.text}`, which is declared below it"
            also = (Label(below.span, f"`{name.text}` is declared here"),)
            self.bag.error(Code.FUNCTION_ORDER, name.span, also=also, name=first, what=what)
            return None
        call = with_array(expression)
        own = self.functions[name.text]
        if own is None:
            for argument in call.arguments:
                self.infer(argument, None)
            return None
        own.used = True
        if call.named or call.binding is not None or len(call.arguments) != len(own.parameters):
            self._report_arguments(own, call)
            return None
        values = [
            self.check(argument, type_) for argument, (_, _, type_) in zip(call.arguments, own.parameters, strict=True)
        ]
        self._count(own.size, expression.span)
        body, place = own.body, self.place(expression.span)
        for (number, parameter, _), value in reversed(list(zip(own.parameters, values, strict=True))):
            if value is None:
                return None
            body = ir.Let(number, parameter, value, body, place)
        return body

    def _report_arguments(self, own: NodeFunction, call: ast.Call) -> None:
        expected = f"{len(own.parameters)} argument{'' if len(own.parameters) == 1 else 's'}"
        found = f"{len(call.arguments)}" + (" and a name with `=`" if call.named else "")
        self.bag.error(
            Code.FUNCTION_ARGUMENTS, call.function.span, also=(Label(own.name.span, "it is declared here"),),
            name=own.name.text, expected=expected, found=found, help=f"it is `{own.usage()}`",
        )  # fmt: skip

    def _count(self, size: int, span: Span) -> None:
        self._inlined += size
        if self._inlined > MAX_INLINED:
            what = "expressions that calls of the node's functions put in"
            self.bag.error(Code.TOO_LARGE, span, limit=f"{MAX_INLINED:,}", what=what)
            raise CheckingStopped

    def report_unused_functions(self) -> None:
        for function in self.functions.values():
            if function is not None and not function.used:
                name = function.name
                self.bag.warning(Code.UNUSED_VALUE, name.span, what="the function", name=name.text)
