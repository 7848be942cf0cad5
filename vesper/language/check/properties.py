"""Properties of a node: claims over one or two runs, checked with the node's types.

Each becomes a function of its own, over the inputs and outputs of the runs, so that every engine evaluates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from vesper.language.check.cases import read_values
from vesper.language.check.expressions.checker import ExpressionChecker
from vesper.language.check.scope import Declared, Scope
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import case_ast
from vesper.values.model import Value
from vesper.values.types import BOOLEAN, Record, Type

RUNS = ("first", "second")
"""Names of two runs in a claim."""
Finish = Callable[[ir.Node], ir.Node]
"""Adds the constants that a function refers to, and numbers its expressions."""


@dataclass(frozen=True, slots=True)
class Property:
    """A claim over one or two runs."""

    name: str
    given: dict[str, Value]
    """Inputs with a fixed value."""
    varied: tuple[str, ...] | None
    """Inputs that differ between two runs; None for a claim over one run."""
    claim: ir.Node
    """A function with the outputs `applies` and `holds`. Its inputs are `input_x` and `output_x`, or the two runs."""
    text: str
    line: int


def check_properties(
    properties: tuple[case_ast.Property, ...],
    node: ir.Node,
    scope: Scope,
    expressions: ExpressionChecker,
    finish: Finish,
    bag: DiagnosticBag,
) -> tuple[Property, ...]:
    """Return the properties of a node. Report unknown names, claims that are not conditions, and nodes with effects."""
    if properties and not node.is_pure():
        what = "`properties` of a node with effects"
        help_ = "claim it of a function that the node calls, or write cases with `effects`"
        bag.error(Code.NOT_IN_THIS_VERSION, properties[0].name.span, what=what, help=help_)
        return ()
    checker = RunChecker(node, scope, expressions, finish, bag)
    return tuple(found for each in properties if (found := checker.check(each)) is not None)


class RunChecker:
    """Checks expressions over inputs and outputs of runs."""

    def __init__(
        self, node: ir.Node, scope: Scope, expressions: ExpressionChecker, finish: Finish, bag: DiagnosticBag
    ) -> None:
        self._node = node
        self._scope = scope
        self._expressions = expressions
        self._finish = finish
        self._bag = bag
        self._inputs = {each.name: each.type for each in node.inputs}
        self._outputs = {each.name: each.type for each in node.outputs}

    def check(self, declared: case_ast.Property) -> Property | None:
        given = read_values(declared.given, self._inputs, "no input", self._bag)
        for word in declared.varied or ():
            if word.text not in self._inputs:
                help_ = did_you_mean(word.text, self._inputs)
                self._bag.error(Code.UNKNOWN_NAME, word.span, kinds="no input", name=word.text, help=help_)
            elif word.text in given:
                problem = "an input that is drawn twice"
                self._bag.error(Code.WRONG_KIND, word.span, key=word.text, expected=problem, found="a `given` one")
        varied = None if declared.varied is None else tuple(word.text for word in declared.varied)
        inputs = self._names_of_one_run() if varied is None else self._names_of_two_runs(varied)
        with self.names(inputs, is_single=varied is None):
            where = None if declared.where is None else self._expressions.check(declared.where, BOOLEAN)
            holds = self._expressions.check(declared.holds, BOOLEAN)
        if holds is None or (declared.where is not None and where is None):
            return None
        span, source = declared.holds.span, self._bag.source
        claim = self._claim(inputs, where, holds)
        text = " ".join(source.slice(span).split())
        line = source.position(declared.name.span.start)[0]
        return Property(declared.name.text, given, varied, claim, text, line)

    def _names_of_one_run(self) -> dict[str, Type]:
        found = {f"input_{name}": type_ for name, type_ in self._inputs.items()}
        return found | {f"output_{name}": type_ for name, type_ in self._outputs.items()}

    def _names_of_two_runs(self, varied: tuple[str, ...]) -> dict[str, Type]:
        """Return the types of the shared inputs and of two run records.

        A record has the run's outputs, and its inputs in a field `input`.
        """
        fields = tuple(self._outputs.items())
        if self._inputs:
            fields = (*fields, ("input", Record(tuple(self._inputs.items()))))
        same = {f"input_{name}": type_ for name, type_ in self._inputs.items() if name not in varied}
        return same | dict.fromkeys(RUNS, Record(fields))

    @contextmanager
    def names(self, inputs: dict[str, Type], is_single: bool) -> Iterator[None]:
        """Declare the names of a claim. No other names are visible except constants and parameters."""
        scope = self._scope
        outer = (scope.names, scope.outputs, scope.in_postcondition, scope.in_invariant, scope.has_clock)
        kept = {name: each for name, each in scope.names.items() if each.kind not in ("input", "step")}
        given: dict[str, Declared] = {}
        outputs: dict[str, Declared] = {}
        for name, type_ in inputs.items():
            kind, _, own = name.partition("_")
            table, shown = (outputs, own) if kind == "output" else (given, own if kind == "input" else name)
            span = self._span_of(shown)
            table[shown] = Declared("input", shown, type_, span, used=True, ir_name=name)
        scope.names, scope.outputs = {**kept, **given}, outputs
        scope.in_postcondition, scope.in_invariant, scope.has_clock = is_single, False, False
        try:
            yield
        finally:
            scope.names, scope.outputs, scope.in_postcondition, scope.in_invariant, scope.has_clock = outer

    def _span_of(self, name: str) -> Span:
        found = self._scope.names.get(name) or self._scope.outputs.get(name)
        return Span(0, 0) if found is None else found.span

    def _claim(self, inputs: dict[str, Type], where: ir.Expression | None, holds: ir.Expression) -> ir.Node:
        """Return the function of a claim, which is evaluated only if its condition `where` holds."""
        place = holds.place
        true = ir.Literal(BOOLEAN, True, place)
        applies = true if where is None else ir.Ref("step", "applies", BOOLEAN, place)
        value = holds if where is None else ir.If(applies, holds, true, BOOLEAN, place)
        steps = () if where is None else (ir.Step("applies", where, where.place),)
        outputs = (ir.Output("applies", BOOLEAN), ir.Output("holds", BOOLEAN))
        body = (*steps, ir.Return((("applies", applies), ("holds", value))))
        return self.function("claim_v1", inputs, outputs, body)

    def function(
        self, node_id: str, inputs: dict[str, Type], outputs: tuple[ir.Output, ...], body: ir.Block
    ) -> ir.Node:
        """Return a function with the constants and functions of the node."""
        node = replace(
            self._node,
            node_id=node_id,
            type="function",
            inputs=tuple(ir.Input(name, type_, None) for name, type_ in inputs.items()),
            outputs=outputs,
            constraints=(),
            preconditions=(),
            body=body,
            postconditions=(),
            errors=(),
            machines=(),
            calls=(),
            invariants=(),
            grants=ir.Grants(),
            taint=None,
            reasons=(),
        )
        return self._finish(node)
