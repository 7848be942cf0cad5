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
class Null:
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
class IsNull:
    operand: Expression
    is_negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class If:
    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Let:
    name: Word
    value: Expression
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Field:
    """`line.qty`; with a base of `input` or `output`, one of the node's own."""

    base: Expression
    name: Word
    span: Span


@dataclass(frozen=True, slots=True)
class Index:
    base: Expression
    index: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Binding:
    """`FOR line IN items WHERE line.qty > 0`; two names walk the keys and values of a map."""

    names: tuple[Word, ...]
    over: Expression
    where: Expression | None


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the library or of the node. With a binding, its first argument is computed for every item."""

    function: Word
    arguments: tuple[Expression, ...]
    binding: Binding | None
    span: Span
    named: tuple[tuple[Word, Expression], ...] = ()
    """`acc = 0` in a fold: what the first argument calls the value so far, and what that is at first."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`SUM`, `COUNT`, `MIN`, `MAX`, `AVG` of a collection, or of a value for every item of one."""

    function: Word
    value: Expression
    binding: Binding | None
    span: Span


@dataclass(frozen=True, slots=True)
class Quantifier:
    """`FORALL` or `EXISTS`."""

    word: Word
    binding: Binding
    holds: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class ArrayLiteral:
    items: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RecordLiteral:
    entries: tuple[tuple[Word, Expression], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class MapLiteral:
    """Braces whose keys are strings in quotes or other values, and not bare words."""

    entries: tuple[tuple[Expression, Expression], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class With:
    """A record with some of its fields replaced."""

    base: Expression
    changes: RecordLiteral
    span: Span


@dataclass(frozen=True, slots=True)
class Comprehension:
    """`[e FOR x IN xs]` an array, `{e FOR x IN xs}` a set, `{k: e FOR x IN xs}` a map."""

    kind: str
    key: Expression | None
    value: Expression
    binding: Binding
    span: Span


Expression: TypeAlias = (
    Name | Number | String | Boolean | Null | Prefix | Infix | IsNull | If | Let | Field | Index | Call | Aggregate
    | Quantifier | ArrayLiteral | RecordLiteral | MapLiteral | With | Comprehension
)  # fmt: skip


def parts(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside, in the order in which they stand."""
    match expression:
        case Prefix(operand=operand) | IsNull(operand=operand):
            return (operand,)
        case Infix(left=left, right=right):
            return (left, right)
        case If(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Let(value=value, body=body):
            return (value, body)
        case Field(base=base):
            return (base,)
        case Index(base=base, index=index):
            return (base, index)
        case Call(arguments=arguments, binding=binding, named=named):
            return (*arguments, *_binding_parts(binding), *(value for _, value in named))
        case Aggregate(value=value, binding=binding):
            return (value, *_binding_parts(binding))
        case Quantifier(binding=binding, holds=holds):
            return (*_binding_parts(binding), holds)
        case ArrayLiteral(items=items):
            return items
        case RecordLiteral(entries=entries):
            return tuple(value for _, value in entries)
        case MapLiteral(entries=pairs):
            return tuple(part for pair in pairs for part in pair)
        case With(base=base, changes=changes):
            return (base, changes)
        case Comprehension(key=key, value=value, binding=binding):
            return (*(() if key is None else (key,)), value, *_binding_parts(binding))
        case _:
            return ()


def _binding_parts(binding: Binding | None) -> tuple[Expression, ...]:
    if binding is None:
        return ()
    return (binding.over,) if binding.where is None else (binding.over, binding.where)


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
class TypeApplied:
    """`array<T>`, `set<T>`, `map<K, V>`, `optional<T>`."""

    head: Word
    arguments: tuple[TypeText, ...]
    span: Span


TypeText: TypeAlias = TypeName | TypeEnum | TypeApplied


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
class Output:
    """An output, or a field of a declared record."""

    name: Word
    type: TypeText


@dataclass(frozen=True, slots=True)
class RecordType:
    """A type of the node's own: fields, and clauses over them that every value of it must meet."""

    name: Word
    fields: tuple[Output, ...]
    constraints: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class NamedType:
    """Another name for a type, with what every value of it must meet; in a clause it is called `value`."""

    name: Word
    type: TypeText
    constraints: tuple[Constraint | Clause, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    name: Word
    type: TypeText
    value: Tree


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the node's own: its value, over its parameters and the node's constants."""

    name: Word
    parameters: tuple[Output, ...]
    returns: TypeText
    value: Expression


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
    inputs: tuple[tuple[Word, Tree], ...]
    expect: tuple[tuple[Word, Tree], ...]
    breaks: Word | None


@dataclass(frozen=True, slots=True)
class Document:
    source: SourceFile
    node_id: Word
    type: Word
    intent: Word
    inputs: tuple[Input, ...]
    types: tuple[RecordType | NamedType, ...]
    outputs: tuple[Output, ...]
    constants: tuple[Constant, ...]
    functions: tuple[Function, ...]
    preconditions: tuple[Clause, ...]
    postconditions: tuple[Clause, ...]
    flow: tuple[Step, ...]
    flow_span: Span
    cases: tuple[TestCase, ...]
