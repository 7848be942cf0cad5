"""Inputs for a node: from its types and constraints, leaning toward the edges that its own literals draw.

A payment node compares with 100 and 1000, so amounts of exactly 100, 100.01 and 999.99 are worth more than amounts at
random. One in forty inputs is wrong on purpose: the two engines must also refuse alike.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal

from vesper.ir.nodes import Literal, Node, Ref, walk
from vesper.kernels.decimal import EXACT
from vesper.spec.types import BOOLEAN, DECIMAL, INTEGER, STRING, Enum, Type
from vesper.spec.values import MAX_INTEGER, MIN_INTEGER
from vesper.verify.boundaries import BoundarySeeker

_WRONG_SHARE = 40
_BOUNDARY_SHARE = 0.15
_LETTERS = "aZ09 _-é😀\u0301\x00\U0010ffff"
_HOSTILE: tuple[object, ...] = (
    None, True, 0, -1, 2**63, 10**1001, 0.1, "", "x", "1e999999999", "1E-1001", "\ud800", b"x", [], {},
    Decimal("NaN"), Decimal("Infinity"), Decimal("-0.00"), Decimal("1E+3"), Decimal("1E+1000"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Edges:
    """Values worth trying, found in the node."""

    decimals: tuple[Decimal, ...]
    integers: tuple[int, ...]
    strings: tuple[str, ...]
    lengths: tuple[int, ...]


def find_edges(node: Node) -> Edges:
    decimals, integers, strings = {Decimal(0), Decimal(1)}, {0, 1, MIN_INTEGER, MAX_INTEGER}, {""}
    lengths = {0, 1}
    literals = [each.value for each in node.expressions() if isinstance(each, Literal)]
    for value in [*literals, *(each.value for each in node.constants)]:
        values = value if isinstance(value, frozenset) else (value,)
        for each in values:
            if isinstance(each, Decimal):
                decimals.add(each)
            elif isinstance(each, str):
                strings.add(each)
            elif not isinstance(each, bool):
                integers.add(each)
                lengths |= {each} if 0 <= each <= 64 else set()
    return Edges(tuple(sorted(decimals)), tuple(sorted(integers)), tuple(sorted(strings)), tuple(sorted(lengths)))


class InputGenerator:
    """Draws inputs from a seed; the same seed gives the same inputs on every machine."""

    def __init__(self, node: Node, seed: int) -> None:
        self._node = node
        self._edges = find_edges(node)
        self._lengths = _exact_lengths(node)
        self._random = random.Random(seed)
        self._boundaries = BoundarySeeker(node, self._random)

    def draw(self) -> dict[str, object]:
        inputs: dict[str, object] = {
            each.name: self._value(each.name, each.type)
            for each in self._node.inputs
            if each.default is None or self._random.random() < 0.9
        }
        if self._random.random() < _BOUNDARY_SHARE:
            inputs = self._boundaries.seek(inputs) or inputs
        if self._random.randrange(_WRONG_SHARE) == 0:
            self._spoil(inputs)
        return inputs

    def _spoil(self, inputs: dict[str, object]) -> None:
        names = [*inputs, "no_such_input"]
        name = self._random.choice(names)
        if name in inputs and self._random.random() < 0.2:
            del inputs[name]
        else:
            inputs[name] = self._random.choice(_HOSTILE)

    def _value(self, name: str, type_: Type) -> object:
        if type_ == DECIMAL:
            return self._decimal()
        if type_ == INTEGER:
            return self._integer()
        if type_ == BOOLEAN:
            return self._random.random() < 0.5
        if isinstance(type_, Enum):
            return self._random.choice(type_.members)
        return self._string(name)

    def _decimal(self) -> Decimal:
        pick = self._random.random()
        if pick < 0.35:  # an edge, or one step beside it
            edge = self._random.choice(self._edges.decimals)
            step = Decimal(
                (self._random.randrange(2), (self._random.randrange(2),), -self._random.choice((0, 1, 2, 5)))
            )
            return EXACT.add(edge, step) if edge.adjusted() < 900 else edge
        if pick < 0.85:  # money
            digits = self._random.choice((3, 4, 5, 6, 8))
            return self._signed(self._random.randrange(10**digits), 2)
        if pick < 0.97:  # other scales and sizes, through the widths that an engine may treat apart
            digits = self._random.choice((1, 9, 18, 19, 20, 37, 38, 39, 40, 60))
            return self._signed(self._random.randrange(10**digits), self._random.randrange(0, 41))
        digits = self._random.choice((500, 990, 996, 999, 1000))
        return self._signed(
            self._random.randrange(10 ** (digits - 1), 10**digits), self._random.choice((0, 2, 998, 1000))
        )

    def _signed(self, coefficient: int, scale: int) -> Decimal:
        sign = int(coefficient != 0 and self._random.random() < 0.15)
        return Decimal((sign, tuple(int(digit) for digit in str(coefficient)), -scale))

    def _integer(self) -> int:
        pick = self._random.random()
        if pick < 0.5:
            edge = self._random.choice(self._edges.integers) + self._random.choice((-1, 0, 0, 1))
            return min(max(edge, MIN_INTEGER), MAX_INTEGER)
        if pick < 0.9:
            return self._random.randrange(-10, 1000)
        return self._random.randrange(MIN_INTEGER, MAX_INTEGER + 1)

    def _string(self, name: str) -> str:
        if self._random.random() < 0.4:
            return self._random.choice(self._edges.strings)
        exact = self._lengths.get(name)
        if exact is not None and self._random.random() < 0.8:
            length = exact
        else:
            length = self._random.choice(self._edges.lengths)
        return "".join(self._random.choice(_LETTERS) for _ in range(length))


def _exact_lengths(node: Node) -> dict[str, int]:
    """The length that a constraint asks of an input, where it names one number."""
    found: dict[str, int] = {}
    for clause in node.constraints:
        parts = list(walk(clause.holds))
        bounds = [each.value for each in parts if isinstance(each, Literal)]
        if clause.input is not None and any(isinstance(each, Ref) and each.type == STRING for each in parts):
            for bound in bounds:
                if isinstance(bound, int) and 0 <= bound <= 1000:
                    found[clause.input] = bound
    return found
