"""Expressions as documents: which brackets may be broken, and where parentheses help.

Every rule is one of the formatter `ruff format`; the tests hold the two equal over golden files and random nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Final, Literal, TypeAlias

import libcst as cst

from vesper.codegen.layout.pretty_printer import (
    SOFT,
    SPACE,
    BestFit,
    Document,
    Edge,
    FirstThatFits,
    Group,
    IfBroken,
    Indented,
    InParentheses,
    OwnBrackets,
    Wrapped,
)

_EMPTY = cst.Module([])
_WORDS = (cst.Name, cst.SimpleString, cst.Integer, cst.Float)

Parentheses: TypeAlias = Literal["never", "if it breaks", "best fit"]
_Level: TypeAlias = Literal["inside", "top"] | int
"""Inside of brackets, where any line may be broken; outside of any; or where parentheses (a number) may come."""

_PRODUCT, _SUM, _BIT_AND, _BIT_OR, _COMPARISON, _BOOLEAN, _CONDITIONAL = range(1, 8)
_PRECEDENCE: Final[dict[type[cst.CSTNode], int]] = {
    cst.Multiply: _PRODUCT,
    cst.Add: _SUM,
    cst.Subtract: _SUM,
    cst.BitAnd: _BIT_AND,
    cst.BitOr: _BIT_OR,
    cst.And: _BOOLEAN,
    cst.Or: _BOOLEAN,
}
_BRACKETS = (cst.List, cst.Set, cst.Dict, cst.ListComp, cst.Tuple, cst.GeneratorExp)


def code_of(node: cst.CSTNode) -> str:
    if type(node) in _WORDS and not node.lpar:  # type: ignore[attr-defined]  # most of what is asked for
        return str(node.value)  # type: ignore[attr-defined]
    return _EMPTY.code_for_node(node)


class ExpressionLayout:
    """Documents of expressions; `marked` are those whose positions are asked for."""

    def __init__(self, marked: Collection[cst.BaseExpression]) -> None:
        self._marked = marked
        self._ids = count(1)

    def fresh(self) -> int:
        return next(self._ids)

    # -- where a statement ends in an expression --------------------------------------------------

    def last(self, node: cst.BaseExpression) -> list[Document]:
        """What a statement ends with: in parentheses only if that makes it fit."""
        match parentheses_of(node):
            case "never":
                return self._bare(node, "top")
            case "best fit":
                return [BestFit(self._bare(node, "top"), self.fresh())]
            case _:
                return self._optional(node)

    def _optional(self, node: cst.BaseExpression) -> list[Document]:
        group = self.fresh()
        if _can_do_without(node):
            return [Wrapped(self._bare(node, group), group)]
        return [Wrapped(self._bare(node, "inside"), group)]

    def tuple_in_parentheses(self, items: Sequence[Sequence[Document]]) -> list[Document]:
        """A tuple without parentheses, which gets them where it must be broken."""
        return [Wrapped(self._separated(items), self.fresh())]

    # -- any expression ---------------------------------------------------------------------------

    def expression(self, node: cst.BaseExpression, level: _Level = "inside") -> list[Document]:
        if node.lpar and not isinstance(node, cst.Tuple | cst.GeneratorExp):
            return self._brackets("(", self._bare(node, "inside"), ")", level)
        return self._bare(node, level)

    def _bare(self, node: cst.BaseExpression, level: _Level) -> list[Document]:
        """Without parentheses of its own, or with those that are the form itself."""
        if node in self._marked:
            return [Edge(node, is_end=False), *self._form(node, level), Edge(node, is_end=True)]
        return self._form(node, level)

    def _form(self, node: cst.BaseExpression, level: _Level) -> list[Document]:
        match node:
            case cst.Name() | cst.Integer() | cst.Float():
                return [node.value]
            case cst.SimpleString():
                return [node.value]
            case cst.Call():
                return [*self.expression(node.func, level), *self._arguments(node.args, level)]
            case cst.Subscript():
                return [*self.expression(node.value, level), *self._index(node, level)]
            case cst.List() | cst.Set() | cst.Tuple():
                return self._display(node, level)
            case cst.Dict():
                return self._dict(node, level)
            case cst.ListComp():
                return self._brackets("[", self._comprehension(node), "]", level)
            case cst.GeneratorExp():
                if not node.lpar:
                    return self._comprehension(node)
                return self._brackets("(", self._comprehension(node), ")", level)
            case cst.Lambda():
                return self._lambda(node, level)
            case cst.IfExp():
                return self._if_wrapped(self._ternary(node, level), level)
            case cst.BinaryOperation() | cst.BooleanOperation() | cst.Comparison():
                return self._if_wrapped(self._operators(_flattened(node), level), level)
            case cst.UnaryOperation():
                sign = "not " if isinstance(node.operator, cst.Not) else "-"
                return [sign, *self.expression(node.expression, level)]
            case cst.Yield(value=cst.From(item=item)):
                return ["yield from ", *self.expression(item, level)]
            case cst.Yield(value=cst.BaseExpression() as value):
                return ["yield ", *self.expression(value, level)]
            case _:
                return [code_of(node)]

    # -- brackets ---------------------------------------------------------------------------------

    def _brackets(self, left: str, inner: Sequence[Document], right: str, level: _Level) -> list[Document]:
        parts: list[Document] = [left, Group([Indented([SOFT, *inner]), SOFT]), right]
        return [OwnBrackets(parts, level)] if isinstance(level, int) else parts

    def _separated(self, items: Sequence[Sequence[Document]]) -> list[Document]:
        parts: list[Document] = []
        for position, item in enumerate(items):
            parts += [",", SPACE, *item] if position else item
        return [*parts, IfBroken(",")] if len(items) > 1 else parts

    def _arguments(self, arguments: Sequence[cst.Arg], level: _Level) -> list[Document]:
        if not arguments:
            return ["()"]
        if len(arguments) == 1 and isinstance(arguments[0].value, cst.GeneratorExp) and not arguments[0].value.lpar:
            return self._brackets("(", self._comprehension(arguments[0].value), ")", level)
        items = [
            [f"{argument.keyword.value}=" if argument.keyword else "", *self.expression(argument.value)]
            for argument in arguments
        ]
        return self._brackets("(", [Group(self._separated(items))], ")", level)

    def _index(self, node: cst.Subscript, level: _Level) -> list[Document]:
        items = []
        for element in node.slice:
            assert isinstance(element.slice, cst.Index)
            items.append(self.expression(element.slice.value))
        inner: list[Document] = items[0] if len(items) == 1 else [Group(self._separated(items))]
        return self._brackets("[", inner, "]", level)

    def _display(self, node: cst.List | cst.Set | cst.Tuple, level: _Level) -> list[Document]:
        left, right = {cst.List: ("[", "]"), cst.Set: ("{", "}")}.get(type(node), ("(", ")"))
        if not node.elements:
            return [left + right]
        items = [self.expression(element.value) for element in node.elements]
        if isinstance(node, cst.Tuple) and len(items) == 1:
            return self._brackets(left, [*items[0], ","], right, level)
        return self._brackets(left, self._separated(items), right, level)

    def _dict(self, node: cst.Dict, level: _Level) -> list[Document]:
        if not node.elements:
            return ["{}"]
        items = []
        for element in node.elements:
            assert isinstance(element, cst.DictElement)
            items.append([*self.expression(element.key), ": ", *self.expression(element.value)])
        return self._brackets("{", self._separated(items), "}", level)

    # -- comprehensions and functions -------------------------------------------------------------

    def _comprehension(self, node: cst.ListComp | cst.GeneratorExp) -> list[Document]:
        parts: list[Document] = [Group(self.expression(node.elt))]
        clause: cst.CompFor | None = node.for_in
        while clause is not None:
            parts += [SPACE, "for ", *self.target(clause.target), " in ", *self.expression(clause.iter)]
            for condition in clause.ifs:
                parts += [SPACE, "if ", *self.expression(condition.test)]
            clause = clause.inner_for_in
        return [Group(parts)]

    def target(self, target: cst.BaseExpression) -> list[Document]:
        if isinstance(target, cst.Tuple):
            return [", ".join(code_of(element.value) for element in target.elements)]
        return [code_of(target)]

    def _lambda(self, node: cst.Lambda, level: _Level) -> list[Document]:
        names = ", ".join(each.name.value for each in node.params.params)
        head = f"lambda {names}: " if names else "lambda: "
        return [head, *self._lambda_body(node.body, level)]

    def _lambda_body(self, body: cst.BaseExpression, level: _Level) -> list[Document]:
        written = self.expression(body, level)
        if isinstance(body, cst.Call):
            below: list[Document] = ["(", Group([Indented([SOFT, *written]), SOFT], expands=True), ")"]
            return [FirstThatFits([written, written, below])]
        if isinstance(body, (*_BRACKETS, cst.Subscript)):
            return written
        return [Wrapped(self._bare(body, "inside"), self.fresh())]

    # -- operators --------------------------------------------------------------------------------

    def _if_wrapped(self, parts: list[Document], level: _Level) -> list[Document]:
        """What is a group of its own inside of parentheses."""
        if level == "inside":
            return [Group(parts)]
        return [InParentheses(parts, level)] if isinstance(level, int) else parts

    def _line(self, level: _Level) -> Document:
        if level == "inside":
            return SPACE
        return InParentheses(None, level) if isinstance(level, int) else " "

    def _ternary(self, node: cst.IfExp, level: _Level) -> list[Document]:
        line = self._line(level)
        parts = [*self.expression(node.body, level), line, "if ", *self.expression(node.test, level), line, "else "]
        if isinstance(node.orelse, cst.IfExp) and not node.orelse.lpar:
            return [*parts, *self._ternary(node.orelse, level)]
        return [*parts, *self.expression(node.orelse, level)]

    def _operators(self, flat: list[_Operand], level: _Level) -> list[Document]:
        """A row of operands and operators, broken before those that bind loosest."""
        loosest = max(each.precedence for each in flat)
        pieces: list[list[_Operand]] = []
        for each in flat:
            if each.precedence == loosest or not pieces:
                pieces.append([])
            pieces[-1].append(each)
        parts: list[Document] = []
        for position, piece in enumerate(pieces):
            if position:
                parts += [self._line(level), f"{piece[0].operator} "]
            if len(piece) == 1:
                parts += self._operand(piece[0], level)
            else:
                rest = [_Operand(piece[0].node, "", 0, piece[0].starts, piece[0].ends), *piece[1:]]
                parts += self._if_wrapped(self._operators(rest, level), level)
        return parts

    def _operand(self, operand: _Operand, level: _Level) -> list[Document]:
        starts = [Edge(each, is_end=False) for each in operand.starts if each in self._marked]
        ends = [Edge(each, is_end=True) for each in operand.ends if each in self._marked]
        return [*starts, *self.expression(operand.node, level), *ends]


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand of a row, with the operator before it."""

    node: cst.BaseExpression
    operator: str
    precedence: int
    starts: tuple[cst.BaseExpression, ...] = ()
    """Operations inside of the row that begin with this operand, outermost first."""
    ends: tuple[cst.BaseExpression, ...] = ()
    """Those that end with it, innermost first."""


def _flattened(node: cst.BaseExpression) -> list[_Operand]:
    return [_Operand(*each) for each in _rows(node, is_outermost=True)]


_Row = tuple[cst.BaseExpression, str, int, tuple[cst.BaseExpression, ...], tuple[cst.BaseExpression, ...]]


def _rows(node: cst.BaseExpression, is_outermost: bool = False) -> Iterator[_Row]:
    parts = _sides(node) if is_outermost or not node.lpar else None
    if parts is None:
        yield node, "", 0, (), ()
        return
    left, operator, precedence, right = parts
    rows = [*_rows(left)]
    first, *more = _rows(right)
    rows += [(first[0], operator, precedence, first[3], first[4]), *more]
    if not is_outermost:
        # Where this operation begins and ends is where its first operand does and its last one.
        rows[0] = (*rows[0][:3], (node, *rows[0][3]), rows[0][4])
        rows[-1] = (*rows[-1][:4], (*rows[-1][4], node))
    yield from rows


@cache
def _sign(kind: type[cst.CSTNode]) -> str:
    return code_of(kind()).strip()


def _sides(node: cst.BaseExpression) -> tuple[cst.BaseExpression, str, int, cst.BaseExpression] | None:
    match node:
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            return left, _sign(type(operator)), _PRECEDENCE[type(operator)], right
        case cst.BooleanOperation(left=left, operator=logical, right=right):
            return left, _sign(type(logical)), _BOOLEAN, right
        case cst.Comparison(left=left, comparisons=[target]):
            return left, _sign(type(target.operator)), _COMPARISON, target.comparator
        case _:
            return None


# -- when a statement's expression gets parentheses ------------------------------------------------


def parentheses_of(node: cst.BaseExpression) -> Parentheses:
    match node:
        case cst.Call(func=base) | cst.Subscript(value=base):
            inner = parentheses_of(base)
            return "never" if base.lpar or inner == "best fit" else inner
        case cst.BinaryOperation() | cst.BooleanOperation() | cst.Comparison() | cst.IfExp() | cst.Lambda():
            return "if it breaks"
        case cst.UnaryOperation(expression=operand):
            return "never" if operand.lpar else parentheses_of(operand)
        case cst.Yield(value=value):
            item = value.item if isinstance(value, cst.From) else value
            inner = parentheses_of(item) if item is not None and not item.lpar else "never"
            return "never" if inner == "best fit" else inner
        case _ if isinstance(node, _BRACKETS):
            return "never"
        case _:
            return "best fit"


class _Ends:
    """What an expression begins and ends with, and how many of its loosest operators it has."""

    def __init__(self) -> None:
        self.has_brackets = False
        self.loosest = 0
        self.count = 0
        self.first: cst.BaseExpression | None = None
        self.is_first_known = False
        self.last: cst.BaseExpression | None = None

    def visit(self, node: cst.BaseExpression) -> None:
        self.last = node
        if node.lpar and not isinstance(node, cst.Tuple | cst.GeneratorExp):
            self.has_brackets = True
        else:
            self.inside(node)
        self._begins_with(node)

    def _begins_with(self, node: cst.BaseExpression | None) -> None:
        if not self.is_first_known:
            self.first, self.is_first_known = node, True

    def inside(self, node: cst.BaseExpression) -> None:
        sides = _sides(node)
        if sides is not None:
            left, _, precedence, right = sides
            self._operators(precedence, 1)
            self.visit(left)
            self.visit(right)
            return
        match node:
            case cst.Call(func=base) | cst.Subscript(value=base):
                self.has_brackets = True
                self.visit(base)
                self.last = node
            case cst.IfExp():
                self._operators(_CONDITIONAL, 2)
                for part in (node.body, node.test, node.orelse):
                    self.visit(part)
            case cst.UnaryOperation():
                self._begins_with(None)
                self.visit(node.expression)
            case cst.Lambda():
                self._begins_with(None)
                self.visit(node.body)
            case cst.Yield(value=value):
                self._begins_with(None)
                if isinstance(value, cst.From):
                    self.visit(value.item)
                elif value is not None:
                    self.visit(value)
            case _ if isinstance(node, _BRACKETS):
                self.has_brackets = True

    def _operators(self, precedence: int, times: int) -> None:
        if precedence > self.loosest:
            self.loosest, self.count = precedence, times
        elif precedence == self.loosest:
            self.count += times


def _can_do_without(node: cst.BaseExpression) -> bool:
    """True where brackets at the beginning or the end of an expression may be broken instead of adding parentheses."""
    ends = _Ends()
    ends.inside(node)
    if not ends.has_brackets or ends.count > 1:
        return False
    if ends.loosest == 0:
        return True
    return any(each is not None and _has_brackets(each) for each in (ends.first, ends.last))


def _has_brackets(node: cst.BaseExpression) -> bool:
    """True for an expression in brackets that are not empty; those of an index do not count."""
    match node:
        case cst.Subscript():
            return False
        case cst.Call():
            return bool(node.args) or bool(node.lpar)
        case cst.List() | cst.Set() | cst.Tuple() | cst.Dict():
            return bool(node.elements)
        case cst.ListComp() | cst.GeneratorExp():
            return True
        case _:
            return bool(node.lpar)
