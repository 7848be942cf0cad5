"""Constructs of the language that nodes use and that exist, as names by kind.

Existing constructs come from the declarations (`schemas/`, generated tables, the union of expressions), so new ones are
covered without a change here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import get_args

import pytest

from tests.support.nodes import ROOT
from vesper.compiler import Compiled
from vesper.language.check import constraints
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.ir import nodes as ir
from vesper.language.ir import statements
from vesper.language.syntax import ast, case_ast, shapes
from vesper.language.syntax.expression_parser import AGGREGATES
from vesper.language.syntax.fields import Fields
from vesper.language.syntax.shape import Shape
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_ast
from vesper.language.syntax.yaml_tree import Mapping, Sequence, Tree
from vesper.values import types
from vesper.values.generated.operations import OPERATIONS
from vesper.values.generated.operators import OPERATOR_LEVELS

Uses = set[tuple[str, str]]

NODE_TYPES = (
    "function",
    "data_transform",
    "http_handler",
    "event_handler",
    "scheduled_job",
    "workflow",
    "state_machine",
)
EXPECTATIONS = ("outputs", "breaks", "error", "fails")
_OF_ANY_STEP = frozenset(
    (
        "step", "operation", "type", "when", "guards", "on_error", "error_handling", "parameters",
        "effect", "key", "timeout", "retry",
    )
)  # fmt: skip
"""Fields with the same meaning in every step, of which one use is enough."""


def everything() -> Uses:
    """Return every construct under the name that `used_by` reports."""
    declared = tomllib.loads((ROOT / "schemas/types.toml").read_text(encoding="utf-8"))["type"]
    by_kind: dict[str, Iterator[str]] = {
        "operation": (name for name, spec in OPERATIONS.items() if spec.is_implemented),
        "type": (name for name, entry in declared.items() if entry.get("status", "implemented") == "implemented"),
        "for": iter(ir.FOR_KINDS),
        "reference": iter(ir.REF_KINDS),
        "form": (form.__name__ for form in get_args(ast.Expression) if form is not ast.Unread),
        "operator": (word for level in OPERATOR_LEVELS for word in level.operators),
        "question": iter(("IS NULL", "IS NOT NULL")),
        "aggregate": iter(AGGREGATES),
        "quantifier": iter(("FORALL", "EXISTS")),
        "comprehension": iter(("array", "set", "map")),
        "binding": iter(("one name", "two names", "WHERE", "in a call", "in an aggregate", "of a fold")),
        "prefix": iter(("input", "output", "error")),
        "contract function": iter(("old", "now")),
        "node type": iter(NODE_TYPES),
        "step": iter(shapes.STEPS),
        "statement": (each.__name__ for each in get_args(statements.Statement)),
        "constraint": iter(_constraint_words()),
        "clause": iter(("of a record", "of a named type", "of a validation", "of a validation with an error")),
        "expectation": iter(EXPECTATIONS),
        "field": (_field(shape, name) for shape in _all_shapes() for name in (*shape.required, *shape.optional)),
    }
    return {(kind, name) for kind, names in by_kind.items() for name in names}


def used_by(node: Compiled) -> Uses:
    """Return the constructs of a node without its fields, which `noting_fields` collects."""
    found: Uses = set()
    bag = DiagnosticBag(node.source)
    tree = read_yaml(bag)
    assert tree is not None, f"{node.source.path} compiled, so it is YAML"
    document = build_ast(tree, bag)
    assert document is not None, f"{node.source.path} compiled, so it has its fields"
    found |= {("field", "a step: parameters") for each in _mappings(tree) if {"operation", "parameters"} <= _keys(each)}
    for part in _parts(document):
        found |= set(_uses_of_syntax(part))
    for expression in node.node.expressions():
        found |= set(_uses_of_ir(expression))
    found |= {("statement", type(each).__name__) for each in statements.all_statements(node.node.body)}
    inputs, outputs, constants = node.node.inputs, node.node.outputs, node.node.constants
    declared = [*(each.type for each in inputs), *(each.type for each in outputs), *(each.type for each in constants)]
    found |= {("type", name) for type_ in declared for name in _type_names(type_)}
    return found


@contextmanager
def noting_fields(found: Uses) -> Iterator[None]:
    """Collect in `found` every mapping field that the front end reads meanwhile."""
    read = Fields.__init__

    def noting(self: Fields, mapping: Mapping, shape: Shape, bag: DiagnosticBag) -> None:
        read(self, mapping, shape, bag)
        found.update(("field", _field(shape, name)) for name in self.names())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fields, "__init__", noting)
        yield


def _uses_of_syntax(part: object) -> Iterator[tuple[str, str]]:
    if isinstance(part, get_args(ast.Expression)):
        yield "form", type(part).__name__
    match part:
        case ast.Document(type=word):
            yield "node type", word.text
        case ast.Prefix(operator=word):
            yield "operator", "unary -" if word.text == "-" else word.text
        case ast.Infix(operator=word):
            yield "operator", word.text
        case ast.IsNull(is_negated=is_negated):
            yield "question", "IS NOT NULL" if is_negated else "IS NULL"
        case ast.Aggregate(function=word, binding=binding):
            yield "aggregate", word.text
            if binding is not None:
                yield "binding", "in an aggregate"
        case ast.Quantifier(word=word):
            yield "quantifier", word.text
        case ast.Comprehension(kind=kind):
            yield "comprehension", kind
        case ast.Call(function=word, binding=binding, named=named):
            yield "contract function", word.text
            if binding is not None:
                yield "binding", "in a call"
            if named:
                yield "binding", "of a fold"
        case ast.Field(base=ast.Name(text=base)):
            yield "prefix", base
        case ast.Binding(names=names, where=where):
            yield "binding", "one name" if len(names) == 1 else "two names"
            if where is not None:
                yield "binding", "WHERE"
        case ast.Step(operation=word):
            yield "step", word.text
        case ast.Constraint(name=word):
            yield "constraint", word.text
        case ast.RecordType(constraints=clauses) if clauses:
            yield "clause", "of a record"
        case ast.NamedType(constraints=clauses) if any(isinstance(each, ast.Clause) for each in clauses):
            yield "clause", "of a named type"
        case ast.Requirement(error=error):
            yield "clause", "of a validation" if error is None else "of a validation with an error"
        case case_ast.TestCase(breaks=breaks, error=error, fails=fails):
            named_ends = {"breaks": breaks, "error": error, "fails": fails}
            yield "expectation", next((name for name, end in named_ends.items() if end is not None), "outputs")
        case _:
            return


def _uses_of_ir(expression: ir.Expression) -> Iterator[tuple[str, str]]:
    for name in _type_names(expression.type):
        yield "type", name
    match expression:
        case ir.Call(op=op):
            yield "operation", op
        case ir.Ref(kind=kind):
            yield "reference", kind
        case ir.For(kind=kind, where=where):
            yield "for", kind
            # Operations written as forms; a comprehension is selected by its value or by its filter.
            forms = {name for name, spec in OPERATIONS.items() if spec.form == kind}
            yield from (("operation", name) for name in forms if name != "array.filter" or where is not None)
        case _:
            return


def _type_names(type_: types.Type) -> Iterator[str]:
    match type_:
        case types.Primitive(name=name):
            yield name
        case types.Enum():
            yield "enum"
        case types.ArrayOf(element=inner):
            yield "array"
            yield from _type_names(inner)
        case types.SetOf(element=inner):
            yield "set"
            yield from _type_names(inner)
        case types.OptionalOf(inner=inner):
            yield "optional"
            yield from _type_names(inner)
        case types.MapOf(key=key, value=value):
            yield "map"
            yield from _type_names(key)
            yield from _type_names(value)
        case types.Record(fields=parts):
            yield "record"
            for _, inner in parts:
                yield from _type_names(inner)
        case _:
            return


def _parts(part: object) -> Iterator[object]:
    """Yield a part of a document and all parts inside, each once."""
    if isinstance(part, tuple | list):
        for each in part:
            yield from _parts(each)
    elif isinstance(part, dict):
        yield from _parts(list(part.values()))
    elif is_dataclass(part) and not isinstance(part, Mapping | Sequence):
        yield part
        for each_field in fields(part):
            yield from _parts(getattr(part, each_field.name))


def _mappings(tree: Tree) -> Iterator[Mapping]:
    if isinstance(tree, Mapping):
        yield tree
        for _, value in tree.entries:
            yield from _mappings(value)
    elif isinstance(tree, Sequence):
        for item in tree.items:
            yield from _mappings(item)


def _keys(mapping: Mapping) -> set[str]:
    return {key.text for key, _ in mapping.entries}


def _all_shapes() -> list[Shape]:
    return [shape for shape in vars(shapes).values() if isinstance(shape, Shape)]


def _field(shape: Shape, name: str) -> str:
    is_step = shape is shapes.COMPUTE_BLOCK or shape in shapes.STEPS.values()
    return f"a step: {name}" if is_step and name in _OF_ANY_STEP else f"{shape.where}: {name}"


def _constraint_words() -> set[str]:
    return {word for known in constraints.BY_TYPE.values() for word in known} | {constraints.PATTERN}
