"""The typed intermediate representation, defined in docs/spec/ir.md.

In memory an expression is a tree whose every part knows its `index` in the document's table. The index identifies an
expression in failures, marks and the source map. `number_expressions` assigns the indices; `encode` writes the table.
Nothing here depends on Python: operations are those that `schemas/ops` declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeAlias

from vesper.language.ir.lookup_tables import Table
from vesper.language.ir.statements import (
    Arm,
    Block,
    Branch,
    Callee,
    CallNode,
    Grants,
    Handler,
    Loop,
    LoopState,
    Machine,
    Parallel,
    Policy,
    Raise,
    Rebuilder,
    Request,
    Require,
    Return,
    Statement,
    Step,
    all_statements,
    expressions_of,
)
from vesper.language.ir.tables import TableSource
from vesper.language.ir.taint import Taint
from vesper.values.inputs import Absence
from vesper.values.model import Value
from vesper.values.types import (
    BOOLEAN,
    DECIMAL,
    INTEGER,
    TIMESTAMP,
    ArrayOf,
    Enum,
    MapOf,
    Outside,
    Record,
    SetOf,
    Type,
    optional,
)

__all__ = [
    "Arm",
    "Block",
    "Branch",
    "CallNode",
    "Callee",
    "Grants",
    "Handler",
    "Loop",
    "LoopState",
    "Machine",
    "Parallel",
    "Policy",
    "Raise",
    "Request",
    "Require",
    "Return",
    "Statement",
    "Step",
]  # fmt: skip

IR_VERSION = 2
UNNUMBERED = -1


@dataclass(frozen=True, slots=True)
class Place:
    """A location in the `.vsp` file: lines and columns from 1, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal value."""

    type: Type
    value: Value
    place: Place
    index: int = UNNUMBERED


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to an input, constant, earlier step, output or error field.

    Outputs occur in postconditions and invariants, error fields in invariants only.
    """

    kind: str
    name: str
    type: Type
    place: Place
    index: int = UNNUMBERED


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operation; `of` are its type arguments."""

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
    """`and` or `or`. The right operand is evaluated only where the left one does not decide."""

    kind: str
    left: Expression
    right: Expression
    place: Place
    index: int = UNNUMBERED

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Local:
    """A name bound by an enclosing expression. The number identifies it; the name is for display."""

    number: int
    name: str
    type: Type
    place: Place
    index: int = UNNUMBERED


@dataclass(frozen=True, slots=True)
class ParameterUse:
    """A use of a parameter, for explanations: its name, unit, source and dates."""

    name: str
    unit: str | None
    reference: str | None
    entries: tuple[tuple[str, str | None], ...]
    """Date and source of each value, in order."""
    at: int = UNNUMBERED
    """Index of the `let` that binds the date and selects the value."""


@dataclass(frozen=True, slots=True)
class Let:
    """A local bound to a value inside `body`."""

    local: int
    name: str
    value: Expression
    body: Expression
    place: Place
    index: int = UNNUMBERED
    note: ParameterUse | None = None
    """The parameter that it looks up, until the node is numbered; `Source` has it then."""

    @property
    def type(self) -> Type:
        return self.body.type


@dataclass(frozen=True, slots=True)
class For:
    """An expression evaluated for every item of a collection. `kind` decides how the values are combined."""

    kind: str
    locals: tuple[int, ...]
    names: tuple[str, ...]
    over: Expression
    where: Expression | None
    key: Expression | None
    value: Expression
    type: Type
    place: Place
    index: int = UNNUMBERED
    with_: Expression | None = None
    """Order of a `sort_by`, or initial value of a `fold`."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array of expressions."""

    items: tuple[Expression, ...]
    of: Type
    place: Place
    index: int = UNNUMBERED

    @property
    def type(self) -> Type:
        return ArrayOf(self.of)


@dataclass(frozen=True, slots=True)
class RecordValue:
    """A record of expressions."""

    fields: tuple[tuple[str, Expression], ...]
    place: Place
    index: int = UNNUMBERED
    declared: Record | None = field(default=None, compare=False)
    """The type with its outside names, where the place of the record has one. It is not encoded."""

    @property
    def type(self) -> Type:
        return self.declared or Record(tuple((name, value.type) for name, value in self.fields))


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record."""

    of: Expression
    name: str
    type: Type
    place: Place
    index: int = UNNUMBERED


@dataclass(frozen=True, slots=True)
class Apply:
    """A call of a recursive function of the node."""

    function: str
    args: tuple[Expression, ...]
    type: Type
    place: Place
    index: int = UNNUMBERED


@dataclass(frozen=True, slots=True)
class Now:
    """The recorded start time of the execution."""

    place: Place
    index: int = UNNUMBERED

    @property
    def type(self) -> Type:
        return TIMESTAMP


@dataclass(frozen=True, slots=True)
class Result:
    """The completion of a request, or the outputs of a called node."""

    type: Type
    place: Place
    index: int = UNNUMBERED


Expression: TypeAlias = (
    Literal | Ref | Call | If | Logical | Local | Let | For | Array | RecordValue | Field | Apply | Now | Result
)
FOR_KINDS = (
    "array", "set", "map", "forall", "exists", "sum", "count", "min", "max", "avg", "sort_by", "distinct_by", "min_by",
    "max_by", "group_by", "count_by", "index_by", "take_while", "drop_while", "fold",
)  # fmt: skip
OF_ITEMS = frozenset(
    ("sort_by", "distinct_by", "min_by", "max_by", "group_by", "count_by", "index_by", "take_while", "drop_while")
)
"""Kinds of `for` whose result consists of items instead of values; they have one local."""
ORDER = Enum(("ascending", "descending"))
"""Type of the `with` of a `sort_by`."""
REF_KINDS = ("input", "constant", "step", "output", "error")


def item_types(collection: Type) -> tuple[Type, ...]:
    """Return the types of a collection's items. A map has two: of its keys and of its values."""
    match collection:
        case ArrayOf(element) | SetOf(element):
            return (element,)
        case MapOf(key, value):
            return (key, value)
        case _:
            return ()


def for_type(kind: str, key: Expression | None, value: Expression, over: Type) -> Type:
    """Return the type of a `for` of this kind over a collection of this type."""
    if kind in OF_ITEMS:
        return _type_of_items(kind, value.type, item_types(over)[0])
    match kind:
        case "avg":
            return DECIMAL if value.type == INTEGER else value.type
        case "array":
            return ArrayOf(value.type)
        case "set":
            return SetOf(value.type)
        case "map":
            assert key is not None
            return MapOf(key.type, value.type)
        case "forall" | "exists":
            return BOOLEAN
        case "count":
            return INTEGER
        case _:
            return value.type


def _type_of_items(kind: str, key: Type, item: Type) -> Type:
    match kind:
        case "min_by" | "max_by":
            return optional(item)
        case "group_by":
            return MapOf(key, ArrayOf(item))
        case "count_by":
            return MapOf(key, INTEGER)
        case "index_by":
            return MapOf(key, item)
        case _:
            return ArrayOf(item)


@dataclass(frozen=True, slots=True)
class Input:
    """A declared input."""

    name: str
    type: Type
    default: Value | None
    outside: str | None = None
    """Name in JSON and Arrow, if another."""
    flag: str | None = None
    """Input that is true where a caller left this one out."""


@dataclass(frozen=True, slots=True)
class Output:
    """A declared output or error field."""

    name: str
    type: Type
    outside: str | None = None
    """Name in JSON and Arrow, if another."""
    flag: str | None = None
    """Output that is true where this one is left out."""


def record_of(declared: Iterable[Input | Output]) -> Record:
    """Return the record of all inputs, outputs or error fields, with their outside names."""
    listed = tuple(declared)
    outside = Outside(
        tuple((each.name, each.outside) for each in listed if each.outside is not None),
        tuple((each.name, each.flag) for each in listed if each.flag is not None),
    )
    fields = tuple((each.name, each.type) for each in listed)
    return Record(fields, None, None if outside == Outside() else outside)


@dataclass(frozen=True, slots=True)
class Constant:
    """A declared constant."""

    name: str
    type: Type
    value: Value


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition that must hold. `input` names the input to which a constraint belongs."""

    holds: Expression
    text: str
    input: str | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a recursive function: the local that it binds."""

    local: int
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Function:
    """A recursive function of the node. Its value reads parameters and constants only."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: Type
    max_depth: int
    """Maximum number of active calls of the functions that call each other with this one."""
    value: Expression


@dataclass(frozen=True, slots=True)
class Source:
    """Source file of a node."""

    path: str
    sha256: str
    intent: str
    parameters: tuple[ParameterUse, ...] = ()
    """Uses of parameters, in table order."""


@dataclass(frozen=True, slots=True)
class Node:
    """A checked node."""

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
    errors: tuple[Output, ...] = ()
    """Fields of declared errors; `error_code` is the first."""
    machines: tuple[Machine, ...] = ()
    calls: tuple[Callee, ...] = ()
    invariants: tuple[Clause, ...] = ()
    grants: Grants = field(default_factory=Grants)
    functions: tuple[Function, ...] = ()
    """Recursive functions; all others are inlined."""
    lookup_tables: tuple[Table, ...] = ()
    """Tables that its lookups name by hash."""
    taint: Taint | None = None
    """Flags of its values; None for a node of a document without them, and before the check ends."""
    tables: tuple[TableSource, ...] = ()
    """Where its decision tables are."""
    reasons: tuple[tuple[int, str], ...] = ()
    """Reason codes of guards by the index of their expressions, for explanations."""

    def phases(self) -> tuple[tuple[str, tuple[Clause, ...]], ...]:
        """Return the clauses by phase, under the names that outcomes use."""
        return (
            ("constraint", self.constraints),
            ("precondition", self.preconditions),
            ("validation", self.validations()),
            ("postcondition", self.postconditions),
            ("invariant", self.invariants),
        )

    def validations(self) -> tuple[Clause, ...]:
        """Return the clauses of validation steps, in program order."""
        return tuple(each.clause for each in all_statements(self.body) if isinstance(each, Require))

    @property
    def declared_inputs(self) -> list[tuple[str, Type, Value | Absence]]:
        """The inputs in the form that readers of inputs take: name, type and default."""
        flagged = self.flagged
        return [
            (each.name, each.type, Absence(flagged[each.name]) if each.name in flagged else each.default)
            for each in self.inputs
        ]

    @property
    def flagged(self) -> dict[str, str]:
        """The inputs that are flags, each with the input whose absence it shows."""
        return {each.flag: each.name for each in self.inputs if each.flag is not None}

    def is_pure(self) -> bool:
        """Return whether an execution makes no requests. A function calls functions only."""
        makes_requests = any(isinstance(each, Request | CallNode) for each in all_statements(self.body))
        return self.type == "function" or not makes_requests

    def roots(self) -> Iterator[Expression]:
        """Yield the outermost expressions in program order, those of functions first."""
        for function in self.functions:
            yield function.value
        for clause in (*self.constraints, *self.preconditions):
            yield clause.holds
        yield from expressions_of(self.body)
        for clause in (*self.postconditions, *self.invariants):
            yield clause.holds

    def expressions(self) -> list[Expression]:
        """Return every expression in table order."""
        return [expression for root in self.roots() for expression in walk(root)]


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands in evaluation order."""
    match expression:
        case Call(args=args) | Apply(args=args):
            return args
        case If(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Logical(left=left, right=right):
            return (left, right)
        case Let(value=value, body=body):
            return (value, body)
        case For(over=over, with_=with_, where=where, key=key, value=value):
            return tuple(part for part in (over, with_, where, key, value) if part is not None)
        case Array(items=items):
            return items
        case RecordValue(fields=fields):
            return tuple(value for _, value in fields)
        case Field(of=of):
            return (of,)
        case _:
            return ()


def walk(expression: Expression) -> list[Expression]:
    """Return all parts in table order: operands left to right, then the expression itself."""
    # Collected backwards from the root and reversed. Nested generators would cost the depth of the tree for every
    # expression.
    found: list[Expression] = []
    waiting = [expression]
    while waiting:
        last = waiting.pop()
        found.append(last)
        if isinstance(last, Call):
            waiting += last.args
        elif not isinstance(last, (Ref, Literal)):
            waiting += children(last)
    found.reverse()
    return found


def depth(expression: Expression) -> int:
    """Return the depth of the tree; an expression without operands has depth 1."""
    depths: dict[int, int] = {}
    for part in walk(expression):
        depths[id(part)] = 1 + max((depths[id(child)] for child in children(part)), default=0)
    return depths[id(expression)]


def number_expressions(node: Node, names: Mapping[str, str] | None = None) -> Node:
    """Return the node with indices of expressions and new numbers of locals, without flags.

    Locals follow the order of their binders. Flags name expressions by index, so they are computed afterwards.
    `names` are new names of constants, and of functions under their name and `()`.
    """
    numbers, locals_ = count(), count()
    renamed = names or {}
    parameters: list[ParameterUse] = []

    def number(expression: Expression, bound: dict[int, int]) -> Expression:
        # The three most frequent kinds come first and without `match`, which would dominate the cost.
        if isinstance(expression, Ref):
            name = renamed.get(expression.name, expression.name) if expression.kind == "constant" else expression.name
            return Ref(expression.kind, name, expression.type, expression.place, next(numbers))
        if isinstance(expression, Literal):
            return Literal(expression.type, expression.value, expression.place, next(numbers))
        if isinstance(expression, Call):
            args = tuple([number(each, bound) for each in expression.args])
            return Call(expression.op, expression.of, args, expression.type, expression.place, next(numbers))
        match expression:
            case If(condition, then, otherwise, type_, place):
                parts = [number(each, bound) for each in (condition, then, otherwise)]
                return If(parts[0], parts[1], parts[2], type_, place, next(numbers))
            case Logical(kind, left, right, place):
                return Logical(kind, number(left, bound), number(right, bound), place, next(numbers))
            case Local(local, name, type_, place):
                return Local(bound[local], name, type_, place, next(numbers))
            case Let(local, name, value, body, place):
                first = number(value, bound)
                inner = bound | {local: next(locals_)}
                bound_body = number(body, inner)
                made = Let(inner[local], name, first, bound_body, place, next(numbers))
                if expression.note is not None:
                    parameters.append(replace(expression.note, at=made.index))
                return made
            case For():
                over = number(expression.over, bound)
                with_ = None if expression.with_ is None else number(expression.with_, bound)
                inner = bound | {local: next(locals_) for local in expression.locals}
                where = None if expression.where is None else number(expression.where, inner)
                key = None if expression.key is None else number(expression.key, inner)
                value = number(expression.value, inner)
                own = tuple(inner[local] for local in expression.locals)
                return replace(
                    expression, locals=own, over=over, with_=with_, where=where, key=key, value=value,
                    index=next(numbers),
                )  # fmt: skip
            case Array(items, of, place):
                return Array(tuple([number(each, bound) for each in items]), of, place, next(numbers))
            case RecordValue(fields, place, _, declared):
                numbered = tuple([(name, number(each, bound)) for name, each in fields])
                return RecordValue(numbered, place, next(numbers), declared)
            case Field(of, name, type_, place):
                return Field(number(of, bound), name, type_, place, next(numbers))
            case Apply(function, args, type_, place):
                called = renamed.get(f"{function}()", function)
                return Apply(called, tuple([number(each, bound) for each in args]), type_, place, next(numbers))
            case Now(place):
                return Now(place, next(numbers))
            case Result(type_, place):
                return Result(type_, place, next(numbers))

    def clauses(of: tuple[Clause, ...]) -> tuple[Clause, ...]:
        return tuple([Clause(number(each.holds, {}), each.text, each.input) for each in of])

    def numbered_function(function: Function) -> Function:
        bound = {each.local: next(locals_) for each in function.parameters}
        parameters = tuple([replace(each, local=bound[each.local]) for each in function.parameters])
        return replace(function, parameters=parameters, value=number(function.value, bound))

    functions = tuple([numbered_function(each) for each in node.functions])
    constraints, preconditions = clauses(node.constraints), clauses(node.preconditions)
    body = Rebuilder(number, lambda: next(locals_)).block(node.body, {})
    postconditions, invariants = clauses(node.postconditions), clauses(node.invariants)
    return replace(
        node,
        constraints=constraints,
        preconditions=preconditions,
        body=body,
        postconditions=postconditions,
        invariants=invariants,
        functions=functions,
        source=replace(node.source, parameters=tuple(parameters)) if parameters else node.source,
        taint=None,
    )


def mentioned_refs(clause: Clause) -> tuple[Ref, ...]:
    """Return the names that a broken clause shows, once each in order of first mention.

    Large constants are left out. If an input and an output share a name, only the output is shown, at the position of
    the first.
    """
    found: dict[str, Ref] = {}
    for expression in walk(clause.holds):
        if isinstance(expression, Ref) and not (
            expression.kind == "constant" and isinstance(expression.type, SetOf | MapOf)
        ):
            # The value of a skippable step `x` is named `_x` in the IR.
            name = expression.name.lstrip("_")
            if name not in found or expression.kind == "output":
                found[name] = expression
    return tuple(found.values())
