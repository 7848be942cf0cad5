"""Syntax tree of a node as written, with spans and with unresolved names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax.scalar_text import PlacedText
from vesper.language.syntax.yaml_tree import Scalar, Tree
from vesper.language.tables.cells import Test
from vesper.values.types import Type

if TYPE_CHECKING:  # which is made of the classes below
    from vesper.language.syntax import budget_ast, case_ast, library_ast
    from vesper.language.syntax.agents import agent_ast
    from vesper.language.syntax.fields import Fields
    from vesper.language.syntax.http_field import Http


@dataclass(frozen=True, slots=True)
class Word:
    """A name, or another text used verbatim."""

    text: str
    span: Span


# -- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Number:
    """Digits as written; a point makes it a decimal, an exponent a float."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class String:
    """A string literal."""

    text: str
    span: Span
    offsets: Sequence[int] = field(default=(), compare=False, repr=False)
    """File offset of each character, and of the closing quote."""

    def part(self, start: int, end: int) -> Span:
        """Return the span in the file of the characters `start:end`."""
        last = len(self.offsets) - 1
        return Span(self.offsets[min(start, last)], self.offsets[min(end, last)])


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
class InRange:
    """`value IN [low..high)`; a square bracket includes the bound, a round one does not."""

    value: Expression
    low: Expression
    high: Expression
    includes_low: bool
    includes_high: bool
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
    """`line.qty`; with the base `input`, `output` or `error`, a name of the node."""

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
    """A binding `FOR line IN items WHERE line.qty > 0`. With two names it binds the keys and values of a map."""

    names: tuple[Word, ...]
    over: Expression
    where: Expression | None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a library or node function. With a binding, its first argument is evaluated for every item."""

    function: Word
    arguments: tuple[Expression, ...]
    binding: Binding | None
    span: Span
    named: tuple[tuple[Word, Expression], ...] = ()
    """`acc = 0` in a fold: name and initial value of the accumulator."""


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(value AS type)`."""

    value: Expression
    type: TypeText
    span: Span


@dataclass(frozen=True, slots=True)
class Ascription:
    """`value AS type`: the type of a value in its place."""

    value: Expression
    type: TypeText
    span: Span


@dataclass(frozen=True, slots=True)
class NodeCall:
    """`price_order(items: xs)`: a call of a function node. Its value is the record of the node's outputs."""

    node: Word
    inputs: tuple[tuple[Word, Expression], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AtDate:
    """`parameter AT date`: the value that is in force at a date."""

    parameter: Word
    date: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`SUM`, `COUNT`, `MIN`, `MAX` or `AVG` over a collection or an expression of its items."""

    function: Word
    value: Expression
    binding: Binding | None
    span: Span


@dataclass(frozen=True, slots=True)
class Quantifier:
    """`FORALL` or `EXISTS` over a collection."""

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
    """Braces whose keys are values such as quoted strings, not bare words."""

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
    """A comprehension of an array, set or map.

    `[e FOR x IN xs]` is an array, `{e FOR x IN xs}` a set, `{k: e FOR x IN xs}` a map.
    """

    kind: str
    key: Expression | None
    value: Expression
    binding: Binding
    span: Span


@dataclass(frozen=True, slots=True)
class Unread:
    """Placeholder for an unreadable expression or type. Its error is reported already, and none is added."""

    span: Span


@dataclass(frozen=True, slots=True)
class Template:
    """Text with holes: strings and expressions alternately. With `in_url` the values of holes are percent-encoded."""

    parts: tuple[str | Expression, ...]
    in_url: bool
    span: Span


@dataclass(frozen=True, slots=True)
class JsonTree:
    """A tree of templates sent as JSON. It has the entries of a mapping or the items of a list."""

    entries: tuple[tuple[Word, Expression], ...]
    items: tuple[Expression, ...]
    is_list: bool
    span: Span


@dataclass(frozen=True, slots=True)
class JsonLiteral:
    """A plain number, `true`, `false` or null in a tree that is sent as JSON."""

    scalar: Scalar
    span: Span


Expression: TypeAlias = (
    Unread | Name | Number | String | Boolean | Null | Prefix | Infix | IsNull | InRange | If | Let | Field | Index
    | Call | Aggregate | Quantifier | ArrayLiteral | RecordLiteral | MapLiteral | With | Comprehension | Cast
    | Ascription | AtDate | NodeCall | Template | JsonTree | JsonLiteral
)  # fmt: skip


def parts(expression: Expression) -> tuple[Expression, ...]:
    """Return the direct subexpressions in source order."""
    match expression:
        case Prefix(operand=operand) | IsNull(operand=operand):
            return (operand,)
        case Infix(left=left, right=right):
            return (left, right)
        case InRange(value=value, low=low, high=high):
            return (value, low, high)
        case If(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Let(value=value, body=body):
            return (value, body)
        case Field(base=base) | Cast(value=base) | Ascription(value=base):
            return (base,)
        case AtDate(date=date):
            return (date,)
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
        case RecordLiteral(entries=entries) | NodeCall(inputs=entries):
            return tuple(value for _, value in entries)
        case MapLiteral(entries=pairs):
            return tuple(part for pair in pairs for part in pair)
        case With(base=base, changes=changes):
            return (base, changes)
        case Template(parts=pieces):
            return tuple(piece for piece in pieces if not isinstance(piece, str))
        case JsonTree(entries=entries, items=items):
            return (*(value for _, value in entries), *items)
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


@dataclass(frozen=True, slots=True)
class KnownType:
    """A type without a text. The front end uses it in parts that it adds to a node."""

    type: Type
    span: Span


TypeText: TypeAlias = TypeName | TypeEnum | TypeApplied | KnownType | Unread


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
    is_required: bool = True
    outside: Word | None = None
    """Name in JSON and Arrow."""
    flag: Word | None = None
    """Input that is true where a caller left this one out; it follows in the list."""


@dataclass(frozen=True, slots=True)
class Output:
    """An output, or a field of a declared record."""

    name: Word
    type: TypeText
    outside: Word | None = None
    """Name in JSON and Arrow."""
    flag: Word | None = None
    """Output or field that is true where this one is left out; it follows in the list."""


@dataclass(frozen=True, slots=True)
class RecordType:
    """A record type declared by the node: fields, and clauses that every value must satisfy."""

    name: Word
    fields: tuple[Output, ...]
    constraints: tuple[Clause, ...]
    rest: Word | None = None
    """The last field, which holds undeclared keys."""


@dataclass(frozen=True, slots=True)
class NamedType:
    """A name for another type, with constraints on its values. A clause refers to the value as `value`."""

    name: Word
    type: TypeText
    constraints: tuple[Constraint | Clause, ...]
    outside: tuple[tuple[Word, Word], ...] = ()
    """Members of an enum, and their texts in JSON and Arrow."""


@dataclass(frozen=True, slots=True)
class Constant:
    name: Word
    type: TypeText
    value: Tree


@dataclass(frozen=True, slots=True)
class Function:
    """A function declared by the node, with an expression or a table as its value."""

    name: Word
    parameters: tuple[Output, ...]
    returns: TypeText | None
    """None for a top-level table, whose outputs decide."""
    value: Expression | DecisionTable
    max_depth: Scalar | None = None
    """Bound of its recursion; None for a function that is inlined."""


# -- flow -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition of a contract, and its text without YAML quotes."""

    holds: Expression
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """Steps and an optional value inside a step."""

    steps: tuple[Step, ...]
    value: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class Compute:
    """A compute step."""

    value: Expression
    type: TypeText | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a decision table: its tests, and the text of their operands."""

    tests: tuple[Test, ...]
    text: PlacedText
    span: Span


@dataclass(frozen=True, slots=True)
class Column:
    """A column of conditions. Its value is by default the name in scope; `allowed` are cells."""

    name: Word
    value: Expression | None
    allowed: tuple[Cell, ...] = ()


@dataclass(frozen=True, slots=True)
class TableOutput:
    """A column of results: its type and its allowed literals, the highest priority first."""

    name: Word
    type: TypeText
    values: tuple[Tree, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a decision table, which matches if all of its cells and its condition hold."""

    cells: tuple[tuple[Word, Cell], ...]
    when: Expression | None
    then: Expression | None
    """None only where the hit policy counts rows."""
    span: Span
    line: int
    annotation: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TableFile:
    """`rows: {file: rates.csv}`: rows in a file beside the node."""

    path: Word
    sheet: Word | None
    span: Span


@dataclass(frozen=True, slots=True)
class DecisionTable:
    """A decision table; `hit` decides which rows apply if several match."""

    rows: tuple[Row, ...] | TableFile
    otherwise: Row | None
    """The default row, without cells and condition."""
    span: Span
    """Span of the rows."""
    type: TypeText | None = None
    hit: Word | None = None
    columns: tuple[Column, ...] = ()
    outputs: tuple[TableOutput, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition, and the error to raise where it fails. Without an error the contract is broken."""

    clause: Clause
    error: ErrorValue | None


@dataclass(frozen=True, slots=True)
class Validation:
    """A validation step."""

    requirements: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """A conditional step."""

    condition: Expression
    then: Block
    otherwise: Block | None
    type: TypeText | None = None


@dataclass(frozen=True, slots=True)
class MatchCase:
    """A case of a match with its literals."""

    literals: tuple[Scalar, ...]
    then: Block


@dataclass(frozen=True, slots=True)
class Match:
    """A match step."""

    on: Expression
    cases: tuple[MatchCase, ...]
    otherwise: Block | None
    type: TypeText | None = None


@dataclass(frozen=True, slots=True)
class StateValue:
    """Initial value of a loop's state."""

    name: Word
    type: TypeText | None
    value: Expression


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over a binding or while a condition holds."""

    binding: Binding | None
    condition: Expression | None
    max: Scalar | None
    state: tuple[StateValue, ...]
    steps: tuple[Step, ...]
    collect: Expression | None
    next: tuple[tuple[Word, Expression], ...]
    stop_when: Expression | None
    max_in_flight: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Parallel:
    """Steps that run together. Each member is a list of steps that run one after the other."""

    members: tuple[tuple[Step, ...], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Return:
    values: tuple[tuple[Word, Expression], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ErrorValue:
    """Fields of a declared error, by name."""

    values: tuple[tuple[Word, Expression], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Raise:
    error: ErrorValue


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition of an entity in a state machine."""

    machine: Word
    entity: Expression
    sources: tuple[Word, ...]
    target: Word


@dataclass(frozen=True, slots=True)
class StateRead:
    machine: Word
    entity: Expression


@dataclass(frozen=True, slots=True)
class Sql:
    """A statement as written."""

    text: str
    scalar: Scalar


@dataclass(frozen=True, slots=True)
class EffectStep:
    """A request to the Host as written: fixed words, expressions by name, SQL, declared result."""

    operation: str
    words: dict[str, Word]
    expressions: dict[str, Expression]
    groups: dict[str, tuple[tuple[Word, Expression], ...]]
    """Names and expressions under `bind`, `data`, `set`, `query`, `headers`, `request`."""
    sql: Sql | None
    where: Sql | None
    returns: TypeText | None
    expect: tuple[Output, ...] | None
    """Fields of the response, where `expect` is a mapping."""
    literals: dict[str, Tree]
    """Values of `timeout`, `retry` and `ttl`."""
    spans: dict[str, Span]
    """Span of each key."""
    sensitive: bool | tuple[Word, ...] = False
    """Whether the answer is sensitive, or the fields of it that are."""


@dataclass(frozen=True, slots=True)
class CallNode:
    node: Word
    inputs: tuple[tuple[Word, Expression], ...]
    agent: budget_ast.AskedAgent | None = None


Action: TypeAlias = (
    "Compute | DecisionTable | Validation | Conditional | Match | Loop | Parallel | Return | Raise | Transition"
    " | StateRead | EffectStep | CallNode | budget_ast.BudgetBlock"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Handler:
    """Steps to run where a step fails with one of the codes."""

    codes: tuple[Word, ...]
    steps: tuple[Step, ...]
    """Compensation, transition and steps, in this order, and an end if it leaves the node."""
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a flow."""

    name: Word | None
    operation: Word
    conditions: tuple[Expression, ...]
    """`when`, then the guards."""
    action: Action
    handlers: tuple[Handler, ...]
    reasons: tuple[Word | None, ...] = ()
    """Reason codes of the conditions, for explanations; empty where none has one."""

    @property
    def span(self) -> Span:
        """Return the span for messages about the step."""
        return self.operation.span if self.name is None else self.name.span


@dataclass(frozen=True, slots=True)
class StateMachine:
    """A declared state machine."""

    name: Word
    initial: Word
    transitions: tuple[tuple[Word, tuple[Word, ...]], ...]


@dataclass(frozen=True, slots=True)
class Security:
    """The `security` section."""

    required: tuple[Word, ...] = ()
    denied: tuple[Word, ...] = ()
    is_all_sensitive: bool = False
    sensitive: tuple[Word, ...] = ()
    audit: str = "none"
    span: Span | None = None
    """Span of `capabilities_required`."""
    declassified: tuple[tuple[Word, Word], ...] = ()
    """Names of released values, with their reasons."""
    audited: tuple[tuple[Word, Expression], ...] = ()
    """Members of the audit line."""


@dataclass(frozen=True, slots=True)
class Document:
    """A node as written."""

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
    cases: tuple[case_ast.TestCase, ...]
    errors: tuple[Output, ...] = ()
    errors_span: Span | None = None
    invariants: tuple[Clause, ...] = ()
    machines: tuple[StateMachine, ...] = ()
    dependencies: tuple[Word, ...] | None = None
    security: Security = Security()
    policies: dict[str, Tree] = field(default_factory=dict)
    performance: dict[str, Tree] = field(default_factory=dict)
    properties: tuple[case_ast.Property, ...] = ()
    observed: tuple[Step, ...] = ()
    """Reads of `contracts.observe`; the name of each is that of the observed value."""
    uses: tuple[library_ast.Use, ...] = ()
    parameters: tuple[library_ast.Parameter, ...] = ()
    http: Http | None = None
    parallel: Word | None = None
    work: Mapping[str, Fields] = field(default_factory=dict)
    """The fields `schedule`, `queue` and `events` that the node has."""
    agent: agent_ast.Agent | None = None
    """The section of a node of type `agent`, whose flow the check adds."""
