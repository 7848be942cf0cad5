"""The typed intermediate representation, as docs/spec/ir.md defines it.

In memory an expression is a tree whose every part knows its `index` in the document's table: the index is the name of
an expression in failures, marks and the source map. `numbered` gives the indices; `encode` writes the table.
Nothing here is Python: no identifiers, no operators, only operations that `schemas/ops` declares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

from vesper.spec.types import BOOLEAN, SetOf, Type
from vesper.spec.values import Value

IR_VERSION = 1
UNNUMBERED = -1


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in the `.vsp` file: lines and columns from 1, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Literal:
    type: Type
    value: Value
    place: Place
    index: int = UNNUMBERED


@dataclass(frozen=True, slots=True)
class Ref:
    """An input, a constant, a step above, or (in postconditions) an output."""

    kind: str
    name: str
    type: Type
    place: Place
    index: int = UNNUMBERED


@dataclass(frozen=True, slots=True)
class Call:
    op: str
    of: tuple[Type, ...]
    args: tuple[Expression, ...]
    type: Type
    place: Place
    index: int = UNNUMBERED


@dataclass(frozen=True, slots=True)
class If:
    condition: Expression
    then: Expression
    otherwise: Expression
    type: Type
    place: Place
    index: int = UNNUMBERED


@dataclass(frozen=True, slots=True)
class Logical:
    """`and`, `or`: the right operand is evaluated only where the left one does not decide."""

    kind: str
    left: Expression
    right: Expression
    place: Place
    index: int = UNNUMBERED

    @property
    def type(self) -> Type:
        return BOOLEAN


Expression: TypeAlias = Literal | Ref | Call | If | Logical
REF_KINDS = ("input", "constant", "step", "output")


@dataclass(frozen=True, slots=True)
class Input:
    name: str
    type: Type
    default: Value | None


@dataclass(frozen=True, slots=True)
class Output:
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Constant:
    name: str
    type: Type
    value: Value


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition that must hold. `input` names the input a constraint belongs to."""

    holds: Expression
    text: str
    input: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    value: Expression
    place: Place


@dataclass(frozen=True, slots=True)
class Return:
    values: tuple[tuple[str, Expression], ...]


Statement: TypeAlias = Step | Return


@dataclass(frozen=True, slots=True)
class Source:
    path: str
    sha256: str
    intent: str


@dataclass(frozen=True, slots=True)
class Node:
    node_id: str
    type: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    constants: tuple[Constant, ...]
    constraints: tuple[Clause, ...]
    preconditions: tuple[Clause, ...]
    body: tuple[Statement, ...]
    postconditions: tuple[Clause, ...]
    source: Source

    def phases(self) -> tuple[tuple[str, tuple[Clause, ...]], ...]:
        """The clauses by phase, under the names that outcomes use."""
        return (
            ("constraint", self.constraints),
            ("precondition", self.preconditions),
            ("postcondition", self.postconditions),
        )

    def roots(self) -> Iterator[Expression]:
        """The outermost expressions in program order."""
        for clause in (*self.constraints, *self.preconditions):
            yield clause.holds
        for statement in self.body:
            if isinstance(statement, Step):
                yield statement.value
            else:
                yield from (value for _, value in statement.values)
        for clause in self.postconditions:
            yield clause.holds

    def expressions(self) -> list[Expression]:
        """Every expression in table order."""
        return [expression for root in self.roots() for expression in walk(root)]


def children(expression: Expression) -> tuple[Expression, ...]:
    """The operands, in the order in which they may be evaluated."""
    match expression:
        case Call(args=args):
            return args
        case If(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Logical(left=left, right=right):
            return (left, right)
        case _:
            return ()


def walk(expression: Expression) -> list[Expression]:
    """Operands left to right, then the expression itself: the order of the table."""
    # Backwards from the root it is each expression before its operands, from the right; a list is then turned round,
    # because generators nested as deep as the tree cost its depth for every expression.
    found: list[Expression] = []
    waiting = [expression]
    while waiting:
        last = waiting.pop()
        found.append(last)
        waiting += children(last)
    found.reverse()
    return found


def depth(expression: Expression) -> int:
    """How deep the tree is; an expression without operands has depth 1."""
    depths: dict[int, int] = {}
    for part in walk(expression):
        depths[id(part)] = 1 + max((depths[id(child)] for child in children(part)), default=0)
    return depths[id(expression)]


def numbered(node: Node) -> Node:
    """The same node with every expression's index filled in."""
    numbers = count()

    def number(expression: Expression) -> Expression:
        match expression:
            case Literal(type_, value, place):
                return Literal(type_, value, place, next(numbers))
            case Ref(kind, name, type_, place):
                return Ref(kind, name, type_, place, next(numbers))
            case Call(op, of, args, type_, place):
                return Call(op, of, tuple([number(argument) for argument in args]), type_, place, next(numbers))
            case If(condition, then, otherwise, type_, place):
                return If(number(condition), number(then), number(otherwise), type_, place, next(numbers))
            case Logical(kind, left, right, place):
                return Logical(kind, number(left), number(right), place, next(numbers))

    def clauses(of: tuple[Clause, ...]) -> tuple[Clause, ...]:
        return tuple(replace(clause, holds=number(clause.holds)) for clause in of)

    def statement(of: Statement) -> Statement:
        if isinstance(of, Step):
            return replace(of, value=number(of.value))
        return Return(tuple((name, number(value)) for name, value in of.values))

    constraints, preconditions = clauses(node.constraints), clauses(node.preconditions)
    body = tuple(statement(each) for each in node.body)
    return replace(
        node,
        constraints=constraints,
        preconditions=preconditions,
        body=body,
        postconditions=clauses(node.postconditions),
    )


def mentioned(clause: Clause) -> tuple[Ref, ...]:
    """What a broken clause shows: each name it mentions once, in order of first mention, without sets.

    Where an input and an output share a name the output is shown, at the place of the first of the two.
    """
    found: dict[str, Ref] = {}
    for expression in walk(clause.holds):
        if isinstance(expression, Ref) and not isinstance(expression.type, SetOf):
            if expression.name not in found or expression.kind == "output":
                found[expression.name] = expression
    return tuple(found.values())
