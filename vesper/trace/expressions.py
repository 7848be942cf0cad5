"""Expressions about an execution: parsed and checked by the front end, evaluated by an engine.

`print total * 2`, a watch, a breakpoint `input.amount > 10000` and `vesper traces list --where` are expressions of the
language. Each is checked as part of the node and compiled to a function whose inputs are the names that it mentions, so
that each engine evaluates it on its own values. Unmarked values of the node itself, such as the items of a loop, are
evaluated the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from vesper.compiler import Compiled
from vesper.engines.engine import Engine, Limits, Program
from vesper.engines.outcome import Outcome, Returned
from vesper.language.check.expressions.checker import ExpressionChecker
from vesper.language.check.named_types import TypeResolver
from vesper.language.check.recursive_types import erase
from vesper.language.check.scope import Declared, Scope
from vesper.language.diagnostics.diagnostic import CheckingStopped, Diagnostic, DiagnosticBag
from vesper.language.diagnostics.excerpt import render_excerpt
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import encode_and_hash
from vesper.language.ir.recursion import reachable_functions
from vesper.language.syntax.ast import Document
from vesper.language.syntax.expression_parser import parse_tokens
from vesper.language.syntax.scalar_text import place_text
from vesper.language.syntax.tokens import tokenize
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_ast
from vesper.language.syntax.yaml_tree import Scalar
from vesper.values.model import Value, plain
from vesper.values.types import NULL, TIMESTAMP, OptionalOf, Type
from vesper.values.vesper_error import VesperError

Key = tuple[str, str]
"""Kind of a name (`input`, `constant`, `step`, `local`, `output` or `now`) and its key."""
NOW: Key = ("now", "")
_MAX_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class Name:
    """A name that an expression may mention, with its type and value."""

    name: str
    type: Type
    value: Value = None


Names = Mapping[Key, Name]


class BadExpression(VesperError, ValueError):
    """The text is no valid expression over these names; the message has a caret at the error."""


class Loader:
    """Cache of loaded programs, because called nodes are entered often."""

    def __init__(self) -> None:
        self._programs: dict[tuple[Engine, str], Program] = {}

    def load(self, engine: Engine, compiled: Compiled) -> Program:
        key = (engine, compiled.semantic_hash)
        if key not in self._programs:
            self._programs[key] = engine.load(compiled)
        return self._programs[key]


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """An expression compiled to a function of the names that it mentions."""

    text: str
    type: Type
    mentions: tuple[Key, ...]
    compiled: Compiled
    loader: Loader

    def can_evaluate(self, names: Names) -> bool:
        """Return whether every mentioned name has a value."""
        return all(key in names for key in self.mentions)

    def load(self, engine: Engine) -> Program:
        """Load the function in advance, so that its first evaluation does not wait."""
        return self.loader.load(engine, self.compiled)

    def ask(self, engine: Engine, names: Names, limits: Limits | None = None) -> Outcome:
        """Evaluate on these values; the result is the output `value`."""
        given = {_parameter(number): names[key].value for number, key in enumerate(self.mentions)}
        return self.load(engine).call(given, limits=limits)

    def holds(self, engine: Engine, names: Names) -> bool:
        """Return whether the expression evaluates to true. A failure, such as a division by zero, is false."""
        if not self.can_evaluate(names):
            return False
        found = self.ask(engine, names)
        return isinstance(found, Returned) and found.value["value"] is True


def _parameter(number: int) -> str:
    return f"given_{number}"


class Expressions:
    """Expressions about one node."""

    def __init__(self, compiled: Compiled, loader: Loader | None = None) -> None:
        self._compiled = compiled
        self._loader = loader or Loader()
        self._document: Document | None = None
        self._functions: tuple[ir.Function, ...] = ()
        """Recursive functions of the node, as checked for the last text."""
        self._of_node: dict[int, BoundExpression] = {}

    def parse(self, text: str, names: Names, expected: Type | None = None, what: str = "expression") -> BoundExpression:
        """Parse and check a text. Raises `BadExpression`."""
        if not text.strip() or len(text) > _MAX_CHARACTERS:
            raise BadExpression(f"{what}: expected an expression such as `input.amount > 10000`")
        source = SourceFile(what, text)
        bag = DiagnosticBag(source)
        try:
            found = self._check(source, bag, names, expected)
        except CheckingStopped:
            found = None
        errors = [each for each in bag.sorted() if each.severity.value == "error"]
        if found is None or errors:
            raise BadExpression(_render(source, errors[0]) if errors else f"`{text}` is not an expression")
        if found.type == NULL:
            raise BadExpression("`null` alone has no type")
        return self._bind(text, found, self._functions)

    def _check(
        self, source: SourceFile, bag: DiagnosticBag, names: Names, expected: Type | None
    ) -> ir.Expression | None:
        tokens = tokenize(place_text(source, Scalar(source.text, "", Span(0, len(source.text)))), bag)
        parsed = None if tokens is None else parse_tokens(tokens, bag)
        if parsed is None:
            return None
        checker = self._checker(bag, names)
        return checker.infer(parsed, None) if expected is None else checker.check(parsed, expected)

    def _checker(self, bag: DiagnosticBag, names: Names) -> ExpressionChecker:
        """Return a checker with the node's types and functions, and these names."""
        document = self._parse_node()
        scope = Scope(has_clock=self._compiled.node.type != "function")
        types = TypeResolver(document.types, bag)
        types.resolve_all()
        checker = ExpressionChecker(scope, bag, types)
        for constant in self._compiled.node.constants:
            scope.names[constant.name] = Declared("constant", constant.name, constant.type, Span(0, 0))
        self._functions = checker.declare_functions(document.functions, types)
        for (kind, key), found in names.items():
            if kind == "output":
                scope.in_postcondition = True
                scope.outputs[found.name] = Declared(kind, found.name, found.type, Span(0, 0))
            elif kind in ("step", "local"):
                # A constant reference is valid everywhere, beside outputs too; the value is already known here.
                reference = f"{kind}:{key}"
                scope.names[found.name] = Declared("constant", found.name, found.type, Span(0, 0), ir_name=reference)
            elif kind == "input":
                scope.names[found.name] = Declared(kind, found.name, found.type, Span(0, 0))
        return checker

    def _parse_node(self) -> Document:
        if self._document is None:
            bag = DiagnosticBag(self._compiled.source)
            tree = read_yaml(bag)
            document = None if tree is None else build_ast(tree, bag)
            if document is None:  # a trace may carry any text
                node_id = self._compiled.node.node_id
                raise BadExpression(f"the text of {node_id} cannot be read: expressions are unavailable")
            self._document = document
        return self._document

    def of_node(self, expression: ir.Expression) -> BoundExpression:
        """Return the compiled form of an expression of the node itself."""
        found = self._of_node.get(expression.index)
        if found is None:
            found = self._bind("", expression, self._compiled.node.functions)
            self._of_node[expression.index] = found
        return found

    def _bind(self, text: str, expression: ir.Expression, functions: tuple[ir.Function, ...]) -> BoundExpression:
        return _bind(text, expression, self._loader, functions, self._compiled.node.constants)


def _bind(
    text: str,
    expression: ir.Expression,
    loader: Loader,
    functions: tuple[ir.Function, ...],
    constants: tuple[ir.Constant, ...],
) -> BoundExpression:
    """Build a function whose inputs are the names that the expression mentions."""
    given: dict[Key, ir.Ref] = {}

    def parameter(key: Key, type_: Type, place: ir.Place) -> ir.Expression:
        if key not in given:
            given[key] = ir.Ref("input", _parameter(len(given)), type_, place)
        return replace(given[key], place=place)

    body = _parametrise(expression, parameter, frozenset())
    inputs = tuple(ir.Input(each.name, each.type, None) for each in given.values())
    source = SourceFile("expression", text)
    node = ir.Node(
        node_id="expression_v1",
        type="function",
        inputs=inputs,
        outputs=(ir.Output("value", body.type),),
        constants=(),
        constraints=(),
        preconditions=(),
        body=(ir.Return((("value", body),)),),
        postconditions=(),
        source=ir.Source(source.path, source.sha256, "An expression about an execution"),
        functions=functions,
    )
    called = reachable_functions(node)
    node = erase(ir.number_expressions(replace(node, functions=called, constants=constants if called else ())))
    written = encode_and_hash(node)
    if written is None:
        raise BadExpression("the expression is too large")
    return BoundExpression(text, node.outputs[0].type, tuple(given), Compiled(source, node, (), *written), loader)


Parameter = Callable[[Key, Type, ir.Place], ir.Expression]


def _parametrise(expression: ir.Expression, parameter: Parameter, bound: frozenset[int]) -> ir.Expression:
    """Replace every free name of an expression by a parameter."""

    def inner(part: ir.Expression) -> ir.Expression:
        return _parametrise(part, parameter, bound)

    def maybe(part: ir.Expression | None, also: Iterable[int]) -> ir.Expression | None:
        return None if part is None else _parametrise(part, parameter, bound | frozenset(also))

    match expression:
        case ir.Ref(kind, name, type_, place):
            said, _, key = name.partition(":")
            return parameter((said, key) if key else (kind, name), type_, place)
        case ir.Local(number, _, type_, place) if number not in bound:
            return parameter(("local", str(number)), type_, place)
        case ir.Now(place):
            return parameter(NOW, expression.type, place)
        case ir.Call(args=args) | ir.Apply(args=args):
            return replace(expression, args=tuple(map(inner, args)))
        case ir.If(condition, then, otherwise):
            return replace(expression, condition=inner(condition), then=inner(then), otherwise=inner(otherwise))
        case ir.Logical(_, left, right):
            return replace(expression, left=inner(left), right=inner(right))
        case ir.Let(local, _, value, body):
            found = maybe(body, (local,))
            assert found is not None
            return replace(expression, value=inner(value), body=found)
        case ir.For():
            each = maybe(expression.value, expression.locals)
            assert each is not None
            return replace(
                expression,
                over=inner(expression.over),
                with_=maybe(expression.with_, ()),
                where=maybe(expression.where, expression.locals),
                key=maybe(expression.key, expression.locals),
                value=each,
            )
        case ir.Array(items):
            return replace(expression, items=tuple(map(inner, items)))
        case ir.RecordValue(fields):
            return replace(expression, fields=tuple((name, inner(value)) for name, value in fields))
        case ir.Field(of):
            return replace(expression, of=inner(of))
        case _:
            return expression


def names_of_inputs(compiled: Compiled, inputs: Mapping[str, object], now: datetime | None = None) -> Names:
    """Return the names of inputs (given or default) and constants, with their values."""
    found: dict[Key, Name] = {} if now is None else {NOW: Name("now", TIMESTAMP, now)}
    flagged = compiled.node.flagged
    for each in compiled.node.inputs:
        default = flagged[each.name] not in inputs if each.name in flagged else plain(each.default)
        value = inputs.get(each.name, default)
        found["input", each.name] = Name(each.name, each.type, cast(Value, value))
    for constant in compiled.node.constants:
        found["constant", constant.name] = Name(constant.name, constant.type, plain(constant.value))
    return found


def narrow(names: Names) -> Names:
    """Return the names without `optional` where the present value is not null."""
    return {
        key: replace(name, type=name.type.inner)
        if isinstance(name.type, OptionalOf) and name.value is not None
        else name
        for key, name in names.items()
    }


def _render(source: SourceFile, diagnostic: Diagnostic) -> str:
    """Render a diagnostic with a caret, without places of declarations, which are in another text."""
    title = f"error[{diagnostic.code.number}]: {diagnostic.headline}"
    footer = [] if diagnostic.help is None else [f"help: {diagnostic.help}"]
    return render_excerpt(source, title, diagnostic.primary, (), footer)
