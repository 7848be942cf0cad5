"""Expressions that somebody asks about an execution: `input.amount > 10000`.

They are read by the front end of the language and computed by an engine, so they mean what they mean in a node. A name
stands for an input, a constant, or a value that the execution has; `input.NAME` works as it does in a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from vesper.check.expressions import ExpressionChecker
from vesper.check.scope import Scope
from vesper.compiler import Compiled
from vesper.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.diagnostics.render_full import render_full
from vesper.diagnostics.source import SourceFile, Span
from vesper.engines.engine import Program
from vesper.engines.outcome import Outcome, Returned
from vesper.engines.registry import ENGINES, REFERENCE
from vesper.ir import nodes as ir
from vesper.ir.encode import encode_and_hash
from vesper.spec.types import Type
from vesper.spec.values import plain
from vesper.spec.vesper_error import VesperError
from vesper.syntax import ast
from vesper.syntax.expression_parser import parse_expression
from vesper.syntax.yaml_tree import Scalar

_NODE = "asked_v1"
_VALUE = "value"
_LONGEST = 10_000


class AskedWrongly(VesperError):
    """An expression that cannot be read, or has no type; the message has a caret under what is wrong."""


@dataclass(frozen=True, slots=True)
class Question:
    """An expression over named values, ready to be computed."""

    text: str
    type: Type
    names: frozenset[str]
    """What it mentions."""
    program: Program

    def outcome(self, values: Mapping[str, object]) -> Outcome:
        """What it comes to: `Returned({"value": …})`, or how it failed. Names that it does not mention may be left
        out, and are not looked at."""
        return self.program.call({name: values[name] for name in self.names if name in values})

    def holds(self, values: Mapping[str, object]) -> bool:
        """True where it is computed and is true. One that fails (a division by zero) holds for nothing."""
        found = self.outcome(values)
        return isinstance(found, Returned) and found.value[_VALUE] is True

    def value(self, values: Mapping[str, object]) -> object:
        """What it is. Raises `AskedWrongly` where it fails."""
        found = self.outcome(values)
        if isinstance(found, Returned):
            return plain(found.value[_VALUE])
        raise AskedWrongly(f"`{self.text}` has no value here: {getattr(found, 'code', found.kind)}")


def question(
    text: str, names: Mapping[str, Type], expected: Type | None = None, engine: str = REFERENCE, where: str = "here"
) -> Question:
    """Reads an expression over these names. Raises `AskedWrongly`; `where` is what the message calls the text."""
    source = SourceFile(where, text)
    bag = DiagnosticBag(source)
    found: ir.Expression | None = None
    if not text.strip() or len(text) > _LONGEST:
        raise AskedWrongly(f"{where}: an expression is expected, such as `input.amount > 10000`")
    try:
        parsed = parse_expression(Scalar(text, "", Span(0, len(text))), bag)
        if parsed is not None:
            scope = Scope()
            for name, type_ in names.items():
                scope.declare("input", ast.Word(name, Span(0, 0)), type_, bag)
            checker = ExpressionChecker(scope, bag)
            found = checker.infer(parsed, None) if expected is None else checker.check(parsed, expected)
    except CheckingStopped:
        found = None  # the reasons are in the bag
    if found is None or bag.has_errors:
        # Where a name is declared is in the node, and not in this text.
        told = [render_full(source, replace(each, secondary=())) for each in bag.sorted()]
        raise AskedWrongly("\n\n".join(told))
    return _loaded(text, found, names, source, engine)


def inputs_question(compiled: Compiled, text: str, expected: Type | None = None, where: str = "here") -> Question:
    """Reads an expression over the inputs and constants of a node."""
    return question(text, input_types(compiled), expected, where=where)


def input_types(compiled: Compiled) -> dict[str, Type]:
    inputs = {each.name: each.type for each in compiled.node.inputs}
    return inputs | {each.name: each.type for each in compiled.node.constants}


def input_values(compiled: Compiled, inputs: Mapping[str, object]) -> dict[str, object]:
    """The values of what `input_types` names: the inputs that were given, or their defaults, and the constants."""
    found: dict[str, object] = {each.name: plain(each.value) for each in compiled.node.constants}
    for each in compiled.node.inputs:
        found[each.name] = inputs[each.name] if each.name in inputs else plain(each.default)
    return found


def _loaded(text: str, found: ir.Expression, names: Mapping[str, Type], source: SourceFile, engine: str) -> Question:
    """A function whose only output is the expression."""
    mentioned = {each.name for each in ir.walk(found) if isinstance(each, ir.Ref)}
    node = ir.numbered(
        ir.Node(
            node_id=_NODE,
            type="function",
            inputs=tuple(ir.Input(name, type_, None) for name, type_ in names.items() if name in mentioned),
            outputs=(ir.Output(_VALUE, found.type),),
            constants=(),
            constraints=(),
            preconditions=(),
            body=(ir.Return(((_VALUE, found),)),),
            postconditions=(),
            source=ir.Source(source.path, source.sha256, text),
        )
    )
    written = encode_and_hash(node)
    if written is None:
        raise AskedWrongly(f"{source.path}: the expression is too large")
    compiled = Compiled(source, node, (), *written)
    return Question(text, found.type, frozenset(mentioned), ENGINES[engine].load(compiled))
