"""Syntax tree of FEEL. Every node has its offset in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Number:
    """A number, as written."""

    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Text:
    """A string, with its escapes resolved."""

    value: str
    at: int


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false`."""

    value: bool
    at: int


@dataclass(frozen=True, slots=True)
class Null:
    """`null`."""

    at: int


@dataclass(frozen=True, slots=True)
class AtLiteral:
    """`@"…"`: a temporal literal."""

    value: str
    at: int


@dataclass(frozen=True, slots=True)
class Name:
    """A name, with single spaces between its words."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Path:
    """`source.name`."""

    source: Feel
    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Filter:
    """`source[condition]`."""

    source: Feel
    condition: Feel
    at: int


@dataclass(frozen=True, slots=True)
class Call:
    """`function(…)` with arguments by position, or by name."""

    function: Feel
    arguments: tuple[Feel, ...]
    names: tuple[str, ...]
    """Names of the arguments; empty for arguments by position."""
    at: int


@dataclass(frozen=True, slots=True)
class Unary:
    """`-operand`."""

    operand: Feel
    at: int


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, comparison, `and`, `or`."""

    operator: str
    left: Feel
    right: Feel
    at: int


@dataclass(frozen=True, slots=True)
class Between:
    """`value between low and high`."""

    value: Feel
    low: Feel
    high: Feel
    at: int


@dataclass(frozen=True, slots=True)
class In:
    """`value in tests`."""

    value: Feel
    tests: tuple[Feel, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A unary test `< endpoint`."""

    operator: str
    endpoint: Feel
    at: int


@dataclass(frozen=True, slots=True)
class Range:
    """`[low..high]`; an absent end is None."""

    low: Feel | None
    high: Feel | None
    is_low_closed: bool
    is_high_closed: bool
    at: int


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type of `instance of`: a name, and parameters of list, range, context and function."""

    name: str
    parameters: tuple[TypeName, ...]
    names: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class InstanceOf:
    """`value instance of type`."""

    value: Feel
    type: TypeName
    at: int


@dataclass(frozen=True, slots=True)
class If:
    """`if condition then … else …`."""

    condition: Feel
    then: Feel
    otherwise: Feel
    at: int


@dataclass(frozen=True, slots=True)
class Iterator:
    """`name in source`, or `name in source..end`."""

    name: str
    source: Feel
    end: Feel | None
    at: int


@dataclass(frozen=True, slots=True)
class For:
    """`for … return …`."""

    iterators: tuple[Iterator, ...]
    body: Feel
    at: int


@dataclass(frozen=True, slots=True)
class Quantified:
    """`some` or `every … satisfies …`."""

    kind: str
    iterators: tuple[Iterator, ...]
    condition: Feel
    at: int


@dataclass(frozen=True, slots=True)
class FunctionLiteral:
    """`function(a: type, b) body`."""

    parameters: tuple[str, ...]
    types: tuple[TypeName | None, ...]
    body: Feel
    is_external: bool
    at: int


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b]`."""

    items: tuple[Feel, ...]
    at: int


@dataclass(frozen=True, slots=True)
class ContextLiteral:
    """`{name: value}`."""

    entries: tuple[tuple[str, Feel], ...]
    at: int


@dataclass(frozen=True, slots=True)
class UnaryTests:
    """A cell: alternatives, negated or not. No alternatives is `-`."""

    tests: tuple[Feel, ...]
    is_negated: bool
    at: int


Feel: TypeAlias = (
    Number
    | Text
    | Truth
    | Null
    | AtLiteral
    | Name
    | Path
    | Filter
    | Call
    | Unary
    | Binary
    | Between
    | In
    | Comparison
    | Range
    | InstanceOf
    | If
    | For
    | Quantified
    | FunctionLiteral
    | ListLiteral
    | ContextLiteral
    | UnaryTests
)
