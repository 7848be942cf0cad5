"""The document as the author wrote it: every part with its span, nothing resolved yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from vesper.diagnostics.source import SourceFile, Span
from vesper.syntax.yaml_tree import Scalar, Tree


@dataclass(frozen=True, slots=True)
class Word:
    """A name, or another text that is taken as it stands."""

    text: str
    span: Span


# -- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Member:
    """`input.amount`, `output.fee`."""

    scope: Word
    name: Word
    span: Span


@dataclass(frozen=True, slots=True)
class Number:
    """Digits as written; a point makes it a decimal."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class String:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Boolean:
    value: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Prefix:
    operator: Word
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Infix:
    left: Expression
    operator: Word
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class If:
    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span


Expression: TypeAlias = Name | Member | Number | String | Boolean | Prefix | Infix | If


# -- types ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeName:
    name: Word
    span: Span


@dataclass(frozen=True, slots=True)
class TypeEnum:
    members: tuple[Word, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TypeSet:
    element: TypeText
    span: Span


TypeText: TypeAlias = TypeName | TypeEnum | TypeSet


# -- declarations ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constraint:
    """`non_empty`, or `{min: 0}` with its bound."""

    name: Word
    bound: Scalar | None
    span: Span


@dataclass(frozen=True, slots=True)
class Input:
    name: Word
    type: TypeText
    constraints: tuple[Constraint, ...]
    default: Tree | None


@dataclass(frozen=True, slots=True)
class Field:
    name: Word
    type: TypeText


@dataclass(frozen=True, slots=True)
class Constant:
    name: Word
    type: TypeText
    value: Tree


# -- flow -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition of a contract and its text, without the quotes that YAML may need around it."""

    holds: Expression
    text: str


@dataclass(frozen=True, slots=True)
class Compute:
    name: Word
    value: Expression


@dataclass(frozen=True, slots=True)
class Row:
    when: Expression
    then: Expression


@dataclass(frozen=True, slots=True)
class DecisionTable:
    name: Word
    rows: tuple[Row, ...]
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Return:
    values: tuple[tuple[Word, Expression], ...]
    span: Span


Step: TypeAlias = Compute | DecisionTable | Return


@dataclass(frozen=True, slots=True)
class TestCase:
    """A case beside the node: inputs, and either the expected outputs or the clause that must break."""

    name: Word
    inputs: tuple[tuple[Word, Scalar], ...]
    expect: tuple[tuple[Word, Scalar], ...]
    breaks: Word | None


@dataclass(frozen=True, slots=True)
class Document:
    source: SourceFile
    node_id: Word
    type: Word
    intent: Word
    inputs: tuple[Input, ...]
    outputs: tuple[Field, ...]
    constants: tuple[Constant, ...]
    preconditions: tuple[Clause, ...]
    postconditions: tuple[Clause, ...]
    flow: tuple[Step, ...]
    flow_span: Span
    cases: tuple[TestCase, ...]
