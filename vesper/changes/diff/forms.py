"""Forms of syntax trees and of checked expressions that are equal for equal meanings.

A form has no spans, no layout, no comments, and numbers in place of the names of locals. The names of one version are
replaced by those of the other where a declaration was renamed.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass

from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import canonical_json
from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Mapping as TreeMapping
from vesper.language.syntax.yaml_tree import Scalar, Sequence, Tree
from vesper.language.tables.cells import Condition, Operand
from vesper.values.model import to_json

_UNCOMPARED = frozenset({"span", "spans", "offsets", "line", "start", "end", "errors_span", "flow_span", "scalar"})
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AMBIGUOUS = re.compile(r"|null|~|true|false|[-+]?[0-9.][0-9.eE+-]*")
"""Plain scalars that quotes give another meaning."""
_BASES = {"input": "value", "output": "output", "error": "error"}
MAX_DEPTH = 200
"""Depth of checked expressions that are compared; deeper ones count as different."""


@dataclass(frozen=True, slots=True)
class Names:
    """New names of declarations, by their kind and their old name."""

    by_kind: Mapping[tuple[str, str], str] = field(default_factory=dict)
    outputs: frozenset[str] = frozenset()
    """Names that mean an output; only postconditions and invariants have some."""

    def of(self, kind: str, name: str) -> str:
        return self.by_kind.get((kind, name), name)

    def of_value(self, name: str) -> str:
        """Return the new name of a bare word in an expression."""
        return self.of("output" if name in self.outputs else "value", name)


Bound = Mapping[str, int]
_UNBOUND: Bound = {}


def tree_form(tree: Tree | None) -> Hashable:
    """Return the form of a YAML tree: entries of mappings in any order."""
    match tree:
        case None:
            return None
        case Scalar(text=text, style=style):
            is_text = style in ("'", '"') and _AMBIGUOUS.fullmatch(text) is not None
            return ("text", text) if is_text else text
        case Sequence(items=items):
            return ("list", *map(tree_form, items))
        case TreeMapping(entries=entries):
            return ("mapping", frozenset((key.text, tree_form(value)) for key, value in entries))


def tree_text(tree: Tree | None) -> str:
    """Return a YAML tree on one line."""
    match tree:
        case None:
            return ""
        case Scalar(text=text, style=style):
            is_text = style in ("'", '"') and _AMBIGUOUS.fullmatch(text) is not None
            return f'"{text}"' if is_text else text
        case Sequence(items=items):
            return f"[{', '.join(map(tree_text, items))}]"
        case TreeMapping(entries=entries):
            return "{" + ", ".join(f"{key.text}: {tree_text(value)}" for key, value in entries) + "}"


def form_of(part: object, names: Names, bound: Bound = _UNBOUND) -> Hashable:
    """Return the form of any part of a syntax tree."""
    match part:
        case None | bool() | int() | str():
            return part
        case ast.Word(text=text):
            return text
        case Scalar() | Sequence() | TreeMapping():
            return tree_form(part)
        case ast.Clause(holds=holds):
            return form_of(holds, names, bound)
        case ast.Cell(tests=tests):
            return _cell_form(part, names, bound) if tests else None
        case tuple() | list():
            return tuple(form_of(each, names, bound) for each in part)
        case dict():
            return tuple(sorted((key, form_of(value, names, bound)) for key, value in part.items()))
    found = _expression_form(part, names, bound)
    return _fields_form(part, names, bound) if found is None else found


def _expression_form(part: object, names: Names, bound: Bound) -> Hashable | None:
    """Return the form of a part that refers to names or binds some; None for all others."""
    match part:
        case ast.Name(text=text):
            return ("local", bound[text]) if text in bound else ("name", names.of_value(text))
        case ast.Field(base=ast.Name(text=base), name=name) if base in _BASES and base not in bound:
            return ("field", base, names.of(_BASES[base], name.text))
        case ast.TypeName(name=name):
            return ("type", names.of("type", name.text))
        case ast.Let(name=name, value=value, body=body):
            inside = {**bound, name.text: len(bound)}
            return ("let", form_of(value, names, bound), form_of(body, names, inside))
        case ast.Return(values=values):
            return ("return", frozenset((names.of("output", key.text), form_of(v, names, bound)) for key, v in values))
        case ast.ErrorValue(values=values):
            return ("error", frozenset((names.of("error", key.text), form_of(v, names, bound)) for key, v in values))
        case ast.Call(function=function, binding=None, named=()):
            return ("call", names.of("function", function.text), form_of(part.arguments, names, bound))
        case ast.Call() | ast.Aggregate() | ast.Quantifier() | ast.Comprehension():
            return _bound_form(part, names, bound)
        case ast.Loop(binding=binding, state=state):
            over = None if binding is None else form_of(binding.over, names, bound)
            words = (*(() if binding is None else binding.names), *(each.name for each in state))
            inner = _with(bound, words)
            where = None if binding is None else form_of(binding.where, names, inner)
            start = tuple((form_of(each.type, names), form_of(each.value, names, bound)) for each in state)
            next_ = frozenset((inner.get(name.text), form_of(value, names, inner)) for name, value in part.next)
            rest = (part.condition, part.max, part.steps, part.collect, part.stop_when, part.max_in_flight)
            return ("loop", over, where, start, next_, form_of(rest, names, inner))
        case Operand(text=text, is_quoted=is_quoted):
            words_of = _WORD.sub(lambda found: names.of_value(found[0]), text)
            return text if is_quoted else " ".join(words_of.split())
        case _:
            return None


def _bound_form(
    part: ast.Call | ast.Aggregate | ast.Quantifier | ast.Comprehension, names: Names, bound: Bound
) -> Hashable:
    binding = part.binding
    named = part.named if isinstance(part, ast.Call) else ()
    words = (*(() if binding is None else binding.names), *(name for name, _ in named))
    inner = _with(bound, words)
    over = None if binding is None else form_of(binding.over, names, bound)
    where = None if binding is None else form_of(binding.where, names, inner)
    start = tuple(form_of(value, names, bound) for _, value in named)
    what: tuple[object, ...] = ()
    match part:
        case ast.Call(function=function, arguments=arguments):
            what = (names.of("function", function.text), *arguments)
        case ast.Aggregate(function=function, value=value):
            what = (function, value)
        case ast.Quantifier(word=word, holds=holds):
            what = (word, holds)
        case ast.Comprehension(kind=kind, key=key, value=value):
            what = (kind, key, value)
    return (type(part).__name__, len(words), over, where, start, form_of(what, names, inner))


def _with(bound: Bound, words: tuple[ast.Word, ...]) -> Bound:
    return {**bound, **{word.text: len(bound) + place for place, word in enumerate(words)}}


def _cell_form(cell: ast.Cell, names: Names, bound: Bound) -> Hashable:
    tests: list[Hashable] = []
    for test in cell.tests:
        if isinstance(test, Condition):
            text = cell.text.text[test.start : test.end]
            tests.append(("condition", " ".join(_WORD.sub(lambda found: names.of_value(found[0]), text).split())))
        else:
            tests.append(form_of(test, names, bound))
    # Alternatives of literals hold in any order; a condition may fail.
    is_ordered = any(isinstance(test, Condition) for test in cell.tests)
    return ("cell", tuple(tests) if is_ordered else frozenset(tests))


def _fields_form(part: object, names: Names, bound: Bound) -> Hashable:
    assert is_dataclass(part), f"{type(part).__name__} is a part of no syntax tree"
    compared = (each.name for each in fields(part) if each.name not in _UNCOMPARED)
    return (type(part).__name__, *(form_of(getattr(part, name), names, bound) for name in compared))


# -- checked expressions ----------------------------------------------------------------------------

_KINDS = {"input": "value", "constant": "value", "step": "value", "output": "output", "error": "error"}


def checked_form(expression: ir.Expression, names: Names) -> Hashable | None:
    """Return the form of a checked expression; None for one that is too deep to compare."""
    return None if ir.depth(expression) > MAX_DEPTH else _checked(expression, names, {})


def _checked(expression: ir.Expression, names: Names, bound: dict[int, int]) -> Hashable:
    match expression:
        case ir.Literal(type=type_, value=value):
            return ("literal", type_, canonical_json(to_json(type_, value)))
        case ir.Ref(kind=kind, name=name, type=type_):
            # The value of a skippable step `x` is named `_x` in the IR.
            bare = name.lstrip("_")
            return ("ref", kind, name[: len(name) - len(bare)] + names.of(_KINDS[kind], bare), type_)
        case ir.Local(number=number, name=name):
            return ("local", bound[number]) if number in bound else ("free", name)
        case ir.Let(local=local, value=value, body=body):
            inner = {**bound, local: len(bound)}
            return ("let", _checked(value, names, bound), _checked(body, names, inner))
        case ir.For(over=over, locals=locals_, kind=kind):
            inner = {**bound, **{local: len(bound) + place for place, local in enumerate(locals_)}}
            rest = (expression.where, expression.key, expression.value)
            parts = (None if each is None else _checked(each, names, inner) for each in rest)
            with_ = None if expression.with_ is None else _checked(expression.with_, names, bound)
            return ("for", kind, _checked(over, names, bound), with_, *parts)
        case ir.Apply(function=function):
            called = names.of("function", function)
            return ("apply", called, *(_checked(each, names, bound) for each in ir.children(expression)))
    own: tuple[Hashable, ...]
    match expression:
        case ir.Call(op=op, of=of):
            own = (op, of)
        case ir.Logical(kind=kind):
            own = (kind,)
        case ir.Array(of=of):
            own = (of,)
        case ir.RecordValue(fields=given):
            own = tuple(name for name, _ in given)
        case ir.Field(name=name):
            own = (name,)
        case _:
            own = (expression.type,)
    operands = tuple(_checked(each, names, bound) for each in ir.children(expression))
    return (type(expression).__name__, *own, *operands)
