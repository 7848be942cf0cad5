"""Functions of a node: checked once at their declaration, and inlined at each call.

`line_total(line, rate)` becomes `LET line = …, rate = … IN` followed by the function's value: arguments are evaluated
once, in written order. A function may use constants and functions above it, so inlining ends. Its total size is
bounded, because nested calls grow exponentially.

A function with `max_depth` is not inlined. It stays a function in the IR, so it can call itself and all others that
have a `max_depth`, wherever they are declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from vesper.language.check.expressions.binders import Binders, with_array
from vesper.language.check.expressions.literals import read_literal
from vesper.language.check.expressions.narrowing import NOTHING, Facts
from vesper.language.check.expressions.operations import operations_named
from vesper.language.check.expressions.relocate import Relocation
from vesper.language.check.named_types import TypeResolver
from vesper.language.check.scope import Scope
from vesper.language.check.tables.lowered import LoweredTable
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, Label
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.ir import recursion
from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Scalar
from vesper.values.types import INTEGER, Type

Parameters = list[tuple[ast.Word, Type | None]]

MAX_INLINED = 16_384
"""Maximum number of expressions that inlined calls add to a node. Calls inside its functions count."""
MAX_DEPTH = 200


@dataclass(slots=True)
class NodeFunction:
    """A function without errors."""

    name: ast.Word
    parameters: tuple[tuple[int, str, Type], ...]
    """Number, name and type of each parameter."""
    body: ir.Expression | None
    """The value to inline; None for a recursive function."""
    size: int
    returns: Type
    used: bool = False
    library: str | None = None
    """The library that declares it; its spans are of another file."""
    tables: tuple[LoweredTable, ...] = ()
    """Tables of that library, some of which may be in its value."""

    def usage(self) -> str:
        """Return the signature for messages."""
        return f"{self.name.text}({', '.join(f'{name}: {type_}' for _, name, type_ in self.parameters)})"


def qualified_name(library_id: str | None, name: str) -> str:
    """Return the name of a library's definition until it is included in a node.

    No name of a node has a point, so these names cannot clash.
    """
    return name if library_id is None else f"{library_id}.{name}"


class NodeFunctions(Binders):
    """The part of the expression checker for the node's own functions."""

    library_id: str | None
    """The library that is checked; None for a node."""
    tables: list[LoweredTable]

    known: Facts
    functions: dict[str, NodeFunction | None]
    """Callable functions by name; None for a faulty one, whose calls are not reported."""
    functions_below: dict[str, ast.Word]
    """Functions without `max_depth` that are declared further down, and the one being checked."""
    silent: list[Span]
    """Spans whose conditions come from elsewhere: one that is constant there is no mistake of the node."""
    _checked_function = ""
    _inlined = 0

    def declare_functions(self, functions: Sequence[ast.Function], types: TypeResolver) -> tuple[ir.Function, ...]:
        """Check the functions of the node and return those with `max_depth`."""
        self.functions_below = {each.name.text: each.name for each in functions if each.max_depth is None}
        typed: list[tuple[ast.Function, Parameters, Type | None]] = [
            (
                each,
                [(part.name, types.resolve(part.type)) for part in each.parameters],
                None if each.returns is None else types.resolve(each.returns),
            )
            for each in functions
        ]
        for each, parameters, returns in typed:
            if each.max_depth is not None:
                self._announce_recursive(each, parameters, returns)
        found: list[ir.Function] = []
        for each, parameters, returns in typed:
            if each.max_depth is None:
                self._declare_function(each, parameters, returns)
                continue
            recursive = self._declare_recursive(each, parameters, returns, self._max_depth(each.max_depth))
            found += [] if recursive is None else [recursive]
        return tuple(found)

    def _max_depth(self, scalar: Scalar) -> int:
        value = read_literal(INTEGER, scalar, "max_depth", self.bag)
        if isinstance(value, int) and not 1 <= value <= recursion.MAX_DEPTH:
            expected = f"a number from 1 to {recursion.MAX_DEPTH:,}"
            self.bag.error(Code.BAD_LITERAL, scalar.span, text=scalar.text, expected=expected)
        return value if isinstance(value, int) else 1

    def _announce_recursive(self, declared: ast.Function, parameters: Parameters, returns: Type | None) -> None:
        """Make a function with `max_depth` callable everywhere."""
        known = tuple((0, word.text, type_) for word, type_ in parameters if type_ is not None)
        is_sound = returns is not None and len(known) == len(parameters)
        self.functions[declared.name.text] = (
            NodeFunction(declared.name, known, None, 1, returns) if is_sound and returns is not None else None
        )

    def _declare_recursive(
        self, declared: ast.Function, parameters: Parameters, returns: Type | None, max_depth: int
    ) -> ir.Function | None:
        """Return a function with `max_depth`, or None after reporting an error in it."""
        self._report_hidden(declared.name)
        body, numbers = self._body(declared, parameters, returns)
        if body is None or returns is None or self.functions[declared.name.text] is None:
            return None
        if ir.depth(body) > MAX_DEPTH:
            self._report_depth(declared.name)
            return None
        known = tuple(
            ir.Parameter(numbers[word.text], word.text, type_) for word, type_ in parameters if type_ is not None
        )
        return ir.Function(qualified_name(self.library_id, declared.name.text), known, returns, max_depth, body)

    def _declare_function(self, declared: ast.Function, parameters: Parameters, returns: Type | None) -> None:
        """Check a function and make it callable below its declaration."""
        name = declared.name
        self._report_hidden(name)
        body, numbers = self._body(declared, parameters, returns)
        del self.functions_below[name.text]
        known = tuple((numbers[word.text], word.text, type_) for word, type_ in parameters if type_ is not None)
        is_faulty = returns is None and declared.returns is not None
        if body is None or is_faulty or len(known) < len(parameters):
            self.functions[name.text] = None
            return
        if ir.depth(body) > MAX_DEPTH:
            self._report_depth(name)
            self.functions[name.text] = None
            return
        self.functions[name.text] = NodeFunction(name, known, body, len(ir.walk(body)), body.type)

    def _report_hidden(self, name: ast.Word) -> None:
        other = self.functions.get(name.text)
        if other is not None and other.library is not None:
            said = f"a function of `{other.library}`"
            self.bag.error(Code.NAME_TAKEN, name.span, what="this function", name=name.text, other=said)
        if operations_named(name.text):
            self.bag.warning(Code.HIDDEN_FUNCTION, name.span, name=name.text)

    def _report_depth(self, name: ast.Word) -> None:
        self.bag.error(Code.TOO_DEEP, name.span, limit=MAX_DEPTH, what="nesting in this function")

    def _body(
        self, declared: ast.Function, parameters: Parameters, returns: Type | None
    ) -> tuple[ir.Expression | None, dict[str, int]]:
        """Return the value of a function and the numbers of its parameters.

        The value may use only constants and parameters.
        """
        outer, known = self.scope, self.known
        self._checked_function = declared.name.text
        constants = {name: found for name, found in outer.names.items() if found.kind in ("constant", "parameter")}
        self.scope = Scope(names=constants, local_count=outer.local_count, in_function=True)
        self.known = NOTHING
        try:
            with ExitStack() as bound:
                locals_ = [bound.enter_context(self.scope.bind(word, type_, self.bag)) for word, type_ in parameters]
                body = self._declared_value(declared, returns)
        finally:
            outer.local_count = self.scope.local_count
            self.scope, self.known = outer, known
        return body, {local.name: local.number for local in locals_}

    def _declared_value(self, declared: ast.Function, returns: Type | None) -> ir.Expression | None:
        if isinstance(declared.value, ast.DecisionTable):
            return self.table(declared.value, declared.name, returns)
        return self.infer(declared.value, None) if returns is None else self.check(declared.value, returns)

    def own_call(self, expression: ast.Call) -> ir.Expression | None:
        """Return the inlined call of a node function, with its arguments bound around it."""
        name = expression.function
        below = self.functions_below.get(name.text)
        if below is not None:
            caller = self._checked_function
            what = "itself" if name.text == caller else f"`{name.text}`, which is declared below it"
            also = (Label(below.span, f"`{name.text}` is declared here"),)
            help_ = f"add `max_depth: 50` to `{name.text}` to call it from anywhere, at most that deep"
            self.bag.error(Code.FUNCTION_ORDER, name.span, also=also, name=caller, what=what, help=help_)
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
        self.count_inlined(own.size, expression.span)
        body, place = own.body, self.place(expression.span)
        if body is None:
            args = tuple(value for value in values if value is not None)
            function = qualified_name(own.library or self.library_id, name.text)
            return ir.Apply(function, args, own.returns, place) if len(args) == len(values) else None
        if own.library is not None:
            relocation = Relocation(place, moved={})
            body = relocation.move(body)
            self.tables += relocation.move_tables(own.tables)
            self.silent.append(expression.span)
        for (number, parameter, _), value in reversed(list(zip(own.parameters, values, strict=True))):
            if value is None:
                return None
            body = ir.Let(number, parameter, value, body, place)
        return body

    def _report_arguments(self, own: NodeFunction, call: ast.Call) -> None:
        also = () if own.library else (Label(own.name.span, "it is declared here"),)
        expected = f"{len(own.parameters)} argument{'' if len(own.parameters) == 1 else 's'}"
        found = f"{len(call.arguments)}" + (" and a name with `=`" if call.named else "")
        self.bag.error(
            Code.FUNCTION_ARGUMENTS, call.function.span, also=also,
            name=own.name.text, expected=expected, found=found, help=f"it is `{own.usage()}`",
        )  # fmt: skip

    def count_inlined(self, size: int, span: Span) -> None:
        self._inlined += size
        if self._inlined > MAX_INLINED:
            what = "expressions that calls of the node's functions put in"
            self.bag.error(Code.TOO_LARGE, span, limit=f"{MAX_INLINED:,}", what=what)
            raise CheckingStopped

    def report_unused_functions(self) -> None:
        for function in self.functions.values():
            if function is None or function.body is None or function.library is not None:
                continue
            if not function.used:
                name = function.name
                self.bag.warning(Code.UNUSED_VALUE, name.span, what="the function", name=name.text)
