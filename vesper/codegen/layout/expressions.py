"""Expressions as documents: which brackets may be broken, and where parentheses are added.

Every rule is one of the formatter `ruff format`; tests compare both over golden files and random nodes.
"""

from __future__ import annotations

from ast import literal_eval
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
from vesper.codegen.layout.python_expression import write_string

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


def render_code(node: cst.CSTNode) -> str:
    if type(node) in _WORDS and not node.lpar:  # type: ignore[attr-defined]  # the most frequent case
        return str(node.value)  # type: ignore[attr-defined]
    return _EMPTY.code_for_node(node)


def split_text(node: cst.BaseExpression) -> list[str]:
    """Return the literals of a string that is written as several adjacent literals."""
    if isinstance(node, cst.ConcatenatedString):
        return [*split_text(node.left), *split_text(node.right)]
    return [render_code(node)]


class ExpressionLayout:
    """Lay out expressions as documents; positions of `marked` ones are reported."""

    def __init__(self, marked: Collection[cst.BaseExpression]) -> None:
        self._marked = marked
        self._ids = count(1)

    def next_id(self) -> int:
        return next(self._ids)

    # -- where a statement ends in an expression --------------------------------------------------

    def lay_out_last(self, node: cst.BaseExpression) -> list[Document]:
        """Lay out the last expression of a statement, in parentheses only if that makes it fit."""
        match choose_parentheses(node):
            case "never":
                return self._lay_out_bare(node, "top")
            case "best fit":
                return [BestFit(self._lay_out_bare(node, "top"), self.next_id())]
            case _:
                return self._lay_out_optional(node)

    def _lay_out_optional(self, node: cst.BaseExpression) -> list[Document]:
        group = self.next_id()
        if _has_breakable_ends(node):
            return [Wrapped(self._lay_out_bare(node, group), group)]
        return [Wrapped(self._lay_out_bare(node, "inside"), group)]

    def wrap_tuple(self, items: Sequence[Sequence[Document]]) -> list[Document]:
        """Lay out a tuple without parentheses, which are added if it must be broken."""
        return [Wrapped(self._separate(items), self.next_id())]

    # -- any expression ---------------------------------------------------------------------------

    def lay_out(self, node: cst.BaseExpression, level: _Level = "inside") -> list[Document]:
        if node.lpar and not isinstance(node, cst.Tuple | cst.GeneratorExp):
            return self._lay_out_brackets("(", self._lay_out_bare(node, "inside"), ")", level)
        return self._lay_out_bare(node, level)

    def _lay_out_bare(self, node: cst.BaseExpression, level: _Level) -> list[Document]:
        """Lay out an expression without optional parentheses; those that are part of its form remain."""
        if node in self._marked:
            return [Edge(node, is_end=False), *self._lay_out_form(node, level), Edge(node, is_end=True)]
        return self._lay_out_form(node, level)

    def _lay_out_form(self, node: cst.BaseExpression, level: _Level) -> list[Document]:
        match node:
            case cst.Name() | cst.Integer() | cst.Float():
                return [node.value]
            case cst.SimpleString():
                return [node.value]
            case cst.Call():
                return [*self.lay_out(node.func, level), *self._lay_out_arguments(node.args, level)]
            case cst.Subscript():
                return [*self.lay_out(node.value, level), *self._lay_out_index(node, level)]
            case cst.List() | cst.Set() | cst.Tuple():
                return self._lay_out_display(node, level)
            case cst.Dict():
                return self._lay_out_dict(node, level)
            case cst.ListComp():
                return self._lay_out_brackets("[", self._lay_out_comprehension(node), "]", level)
            case cst.GeneratorExp():
                if not node.lpar:
                    return self._lay_out_comprehension(node)
                return self._lay_out_brackets("(", self._lay_out_comprehension(node), ")", level)
            case cst.Lambda():
                return self._lay_out_lambda(node, level)
            case cst.IfExp():
                return self._group_if_wrapped(self._lay_out_ternary(node, level), level)
            case cst.BinaryOperation() | cst.BooleanOperation() | cst.Comparison():
                return self._group_if_wrapped(self._lay_out_operators(_flatten(node), level), level)
            case cst.UnaryOperation():
                sign = "not " if isinstance(node.operator, cst.Not) else "-"
                return [sign, *self.lay_out(node.expression, level)]
            case cst.ConcatenatedString():
                return self._lay_out_text(node)
            case cst.NamedExpr():
                return [Group([render_code(node.target), SPACE]), ":= ", *self.lay_out(node.value, level)]
            case cst.Yield(value=cst.From(item=item)):
                return ["yield from ", *self.lay_out(item, level)]
            case cst.Yield(value=cst.BaseExpression() as value):
                return ["yield ", *self.lay_out(value, level)]
            case _:
                return [render_code(node)]

    # -- brackets ---------------------------------------------------------------------------------

    def _lay_out_brackets(self, left: str, inner: Sequence[Document], right: str, level: _Level) -> list[Document]:
        parts: list[Document] = [left, Group([Indented([SOFT, *inner]), SOFT]), right]
        return [OwnBrackets(parts, level)] if isinstance(level, int) else parts

    def _separate(self, items: Sequence[Sequence[Document]]) -> list[Document]:
        parts: list[Document] = []
        for position, item in enumerate(items):
            parts += [",", SPACE, *item] if position else item
        return [*parts, IfBroken(",")] if len(items) > 1 else parts

    def _lay_out_arguments(self, arguments: Sequence[cst.Arg], level: _Level) -> list[Document]:
        if not arguments:
            return ["()"]
        if len(arguments) == 1 and isinstance(arguments[0].value, cst.GeneratorExp) and not arguments[0].value.lpar:
            return self._lay_out_brackets("(", self._lay_out_comprehension(arguments[0].value), ")", level)
        if len(arguments) == 1 and isinstance(arguments[0].value, cst.NamedExpr) and not arguments[0].keyword:
            # The parentheses of the call are enough.
            items = [self._lay_out_bare(arguments[0].value, "inside")]
            return self._lay_out_brackets("(", [Group(self._separate(items))], ")", level)
        items = [
            [f"{argument.keyword.value}=" if argument.keyword else "", *self.lay_out(argument.value)]
            for argument in arguments
        ]
        return self._lay_out_brackets("(", [Group(self._separate(items))], ")", level)

    def _lay_out_index(self, node: cst.Subscript, level: _Level) -> list[Document]:
        items = []
        for element in node.slice:
            assert isinstance(element.slice, cst.Index)
            items.append(self.lay_out(element.slice.value))
        inner: list[Document] = items[0] if len(items) == 1 else [Group(self._separate(items))]
        return self._lay_out_brackets("[", inner, "]", level)

    def _lay_out_display(self, node: cst.List | cst.Set | cst.Tuple, level: _Level) -> list[Document]:
        left, right = {cst.List: ("[", "]"), cst.Set: ("{", "}")}.get(type(node), ("(", ")"))
        if not node.elements:
            return [left + right]
        items = [self.lay_out(element.value) for element in node.elements]
        if isinstance(node, cst.Tuple) and len(items) == 1:
            return self._lay_out_brackets(left, [*items[0], ","], right, level)
        return self._lay_out_brackets(left, self._separate(items), right, level)

    def _lay_out_dict(self, node: cst.Dict, level: _Level) -> list[Document]:
        if not node.elements:
            return ["{}"]
        items = []
        for element in node.elements:
            assert isinstance(element, cst.DictElement)
            items.append([*self.lay_out(element.key), ": ", *self.lay_out(element.value)])
        return self._lay_out_brackets("{", self._separate(items), "}", level)

    def _lay_out_text(self, node: cst.ConcatenatedString) -> list[Document]:
        """Write one string if it fits on a line, else one line for each of its parts.

        Parentheses are added if needed.
        """
        parts = split_text(node)
        whole = write_string("".join(str(literal_eval(part)) for part in parts))
        lines: list[Document] = []
        for part in parts:
            lines += [SOFT, part] if lines else [part]
        inside = Group([Indented([SOFT, FirstThatFits([[whole], lines])]), SOFT], expands=True)
        return [FirstThatFits([[whole], ["(", inside, ")"]])]

    # -- comprehensions and functions -------------------------------------------------------------

    def _lay_out_comprehension(self, node: cst.ListComp | cst.GeneratorExp) -> list[Document]:
        parts: list[Document] = [Group(self.lay_out(node.elt))]
        clause: cst.CompFor | None = node.for_in
        while clause is not None:
            parts += [SPACE, "for ", *self.lay_out_target(clause.target), " in ", *self.lay_out(clause.iter)]
            for condition in clause.ifs:
                parts += [SPACE, "if ", *self.lay_out(condition.test)]
            clause = clause.inner_for_in
        return [Group(parts)]

    def lay_out_target(self, target: cst.BaseExpression) -> list[Document]:
        if isinstance(target, cst.Tuple):
            return [", ".join(render_code(element.value) for element in target.elements)]
        return [render_code(target)]

    def _lay_out_lambda(self, node: cst.Lambda, level: _Level) -> list[Document]:
        names = ", ".join(each.name.value for each in node.params.params)
        head = f"lambda {names}: " if names else "lambda: "
        return [head, *self._lay_out_lambda_body(node.body, level)]

    def _lay_out_lambda_body(self, body: cst.BaseExpression, level: _Level) -> list[Document]:
        written = self.lay_out(body, level)
        if isinstance(body, cst.Call):
            below: list[Document] = ["(", Group([Indented([SOFT, *written]), SOFT], expands=True), ")"]
            return [FirstThatFits([written, written, below])]
        if isinstance(body, (*_BRACKETS, cst.Subscript)):
            return written
        return [Wrapped(self._lay_out_bare(body, "inside"), self.next_id())]

    # -- operators --------------------------------------------------------------------------------

    def _group_if_wrapped(self, parts: list[Document], level: _Level) -> list[Document]:
        """Group the parts if they are inside of parentheses."""
        if level == "inside":
            return [Group(parts)]
        return [InParentheses(parts, level)] if isinstance(level, int) else parts

    def _choose_line(self, level: _Level) -> Document:
        if level == "inside":
            return SPACE
        return InParentheses(None, level) if isinstance(level, int) else " "

    def _lay_out_ternary(self, node: cst.IfExp, level: _Level) -> list[Document]:
        line = self._choose_line(level)
        parts = [*self.lay_out(node.body, level), line, "if ", *self.lay_out(node.test, level), line, "else "]
        if isinstance(node.orelse, cst.IfExp) and not node.orelse.lpar:
            return [*parts, *self._lay_out_ternary(node.orelse, level)]
        return [*parts, *self.lay_out(node.orelse, level)]

    def _lay_out_operators(self, flat: list[_Operand], level: _Level) -> list[Document]:
        """Lay out a row of operands and operators, broken before the operators that bind loosest."""
        loosest = max(each.precedence for each in flat)
        pieces: list[list[_Operand]] = []
        for each in flat:
            if each.precedence == loosest or not pieces:
                pieces.append([])
            pieces[-1].append(each)
        parts: list[Document] = []
        for position, piece in enumerate(pieces):
            if position:
                parts += [self._choose_line(level), f"{piece[0].operator} "]
            if len(piece) == 1:
                parts += self._lay_out_operand(piece[0], level)
            else:
                rest = [_Operand(piece[0].node, "", 0, piece[0].starts, piece[0].ends), *piece[1:]]
                parts += self._group_if_wrapped(self._lay_out_operators(rest, level), level)
        return parts

    def _lay_out_operand(self, operand: _Operand, level: _Level) -> list[Document]:
        starts = [Edge(each, is_end=False) for each in operand.starts if each in self._marked]
        ends = [Edge(each, is_end=True) for each in operand.ends if each in self._marked]
        return [*starts, *self.lay_out(operand.node, level), *ends]


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


def _flatten(node: cst.BaseExpression) -> list[_Operand]:
    return [_Operand(*each) for each in _split_rows(node, is_outermost=True)]


_Row = tuple[cst.BaseExpression, str, int, tuple[cst.BaseExpression, ...], tuple[cst.BaseExpression, ...]]


def _split_rows(node: cst.BaseExpression, is_outermost: bool = False) -> Iterator[_Row]:
    parts = _split_sides(node) if is_outermost or not node.lpar else None
    if parts is None:
        yield node, "", 0, (), ()
        return
    left, operators = parts
    rows = [*_split_rows(left)]
    for operator, precedence, right in operators:
        first, *more = _split_rows(right)
        rows += [(first[0], operator, precedence, first[3], first[4]), *more]
    if not is_outermost:
        # Where this operation begins and ends is where its first operand does and its last one.
        rows[0] = (*rows[0][:3], (node, *rows[0][3]), rows[0][4])
        rows[-1] = (*rows[-1][:4], (*rows[-1][4], node))
    yield from rows


@cache
def _render_sign(kind: type[cst.CSTNode]) -> str:
    return render_code(kind()).strip()


_Operators = list[tuple[str, int, cst.BaseExpression]]
"""Operators with their precedence and the operand after each."""


def _split_sides(node: cst.BaseExpression) -> tuple[cst.BaseExpression, _Operators] | None:
    """Return the first operand and the operators with their operands. None for an expression without operators."""
    match node:
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            return left, [(_render_sign(type(operator)), _PRECEDENCE[type(operator)], right)]
        case cst.BooleanOperation(left=left, operator=logical, right=right):
            return left, [(_render_sign(type(logical)), _BOOLEAN, right)]
        case cst.Comparison(left=left, comparisons=targets):
            return left, [(_render_sign(type(each.operator)), _COMPARISON, each.comparator) for each in targets]
        case _:
            return None


# -- when a statement's expression gets parentheses ------------------------------------------------


def choose_parentheses(node: cst.BaseExpression) -> Parentheses:
    match node:
        case cst.Call(func=base) | cst.Subscript(value=base):
            inner = choose_parentheses(base)
            return "never" if base.lpar or inner == "best fit" else inner
        case cst.BinaryOperation() | cst.BooleanOperation() | cst.Comparison() | cst.IfExp() | cst.Lambda():
            return "if it breaks"
        case cst.UnaryOperation(expression=operand):
            return "never" if operand.lpar else choose_parentheses(operand)
        case cst.Yield(value=value):
            item = value.item if isinstance(value, cst.From) else value
            inner = choose_parentheses(item) if item is not None and not item.lpar else "never"
            return "never" if inner == "best fit" else inner
        case _ if isinstance(node, _BRACKETS):
            return "never"
        case _:
            return "best fit"


class _Ends:
    """The first and the last part of an expression, and the number of its loosest operators."""

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
            self.visit_inside(node)
        self._note_first(node)

    def _note_first(self, node: cst.BaseExpression | None) -> None:
        if not self.is_first_known:
            self.first, self.is_first_known = node, True

    def visit_inside(self, node: cst.BaseExpression) -> None:
        sides = _split_sides(node)
        if sides is not None:
            left, operators = sides
            self._count_operators(operators[0][1], len(operators))
            for operand in (left, *(right for _, _, right in operators)):
                self.visit(operand)
            return
        match node:
            case cst.Call(func=base) | cst.Subscript(value=base):
                self.has_brackets = True
                self.visit(base)
                self.last = node
            case cst.IfExp():
                self._count_operators(_CONDITIONAL, 2)
                for part in (node.body, node.test, node.orelse):
                    self.visit(part)
            case cst.UnaryOperation():
                self._note_first(None)
                self.visit(node.expression)
            case cst.Lambda():
                self._note_first(None)
                self.visit(node.body)
            case cst.Yield(value=value):
                self._note_first(None)
                if isinstance(value, cst.From):
                    self.visit(value.item)
                elif value is not None:
                    self.visit(value)
            case _ if isinstance(node, _BRACKETS):
                self.has_brackets = True

    def _count_operators(self, precedence: int, times: int) -> None:
        if precedence > self.loosest:
            self.loosest, self.count = precedence, times
        elif precedence == self.loosest:
            self.count += times


def _has_breakable_ends(node: cst.BaseExpression) -> bool:
    """Return whether brackets at the beginning or end of an expression may be broken instead of adding parentheses."""
    ends = _Ends()
    ends.visit_inside(node)
    if not ends.has_brackets or ends.count > 1:
        return False
    if ends.loosest == 0:
        return True
    return any(each is not None and _has_brackets(each) for each in (ends.first, ends.last))


def _has_brackets(node: cst.BaseExpression) -> bool:
    """Return whether an expression is in brackets that are not empty. Those of an index are ignored."""
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
