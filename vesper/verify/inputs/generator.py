"""Generator of a node's inputs from its types and constraints, with a bias to its own literals.

A payment node compares with 100 and 1000, so amounts of exactly 100, 100.01 and 999.99 are more useful than random
ones. Inputs of the node's cases are varied, because they pass contracts that inputs drawn by type do not satisfy. One
in forty inputs is invalid on purpose: the engines must also reject alike.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from math import ceil, floor

from vesper.language.ir.nodes import Call, Literal, Node
from vesper.values.model import MAX_INTEGER, MIN_INTEGER
from vesper.values.types import BOOLEAN, DECIMAL, INTEGER, STRING, ArrayOf, Enum, MapOf, OptionalOf, Record, SetOf, Type
from vesper.verify.inputs.boundaries import BoundarySeeker
from vesper.verify.inputs.bounds import Bounds, length_bounds, number_bounds
from vesper.verify.inputs.edges import decimal_neighbours, find_edges, move_decimal
from vesper.verify.inputs.formats import draw_format, parsers_of
from vesper.verify.inputs.json_shapes import cast_types
from vesper.verify.inputs.pairs import InputPairs
from vesper.verify.inputs.pattern_texts import all_patterns, constraint_patterns, draw_text
from vesper.verify.inputs.scalars import ScalarSource
from vesper.verify.inputs.variation import Variation
from vesper.verify.solve.pool import InputPool
from vesper.verify.solve.search import InputSolver, Wanted

_WRONG_SHARE = 40
_BOUNDARY_SHARE = 0.15
_ALIKE_SHARE = 0.15
_PAIR_SHARE = 0.12
_PARSED_SHARE = 0.35
_TAME_SHARE = 0.6
_CASE_SHARE = 0.3
_PATTERN_SHARE = 0.4
_JOINED_SHARE = 0.6
_REPAIRED_SHARE = 0.85
"""Share of the inputs that are changed to meet the contracts; the others show that the engines refuse alike."""
_MAX_ITEMS = 60
_FEW_ITEMS = (0, 1, 1, 2, 2, 3, 5, 8)
_MANY_ITEMS = (16, 17, 20, 21, 22, 33, 50, _MAX_ITEMS)
"""Counts of items around those at which an algorithm for few items ends."""
_WIDTHS = (2**31, 2**53, 2**63, 2**64, 10**18, 10**19, 10**34, 2**127, 2**128, 10**38)
"""Coefficients at which an engine may use a wider form of a decimal."""
_SCALES = (0, 1, 2, 6, 17, 18, 19, 20, 27, 28, 29, 34, 38)
_SPLITS = ("text.split", "text.index_of", "text.contains", "text.join")
_LENGTHS = (0, 1, 7, 8, 9, 15, 16, 17, 22, 23, 24, 25, 31, 32, 33, 63, 64, 65, 255, 256, 257)
"""Lengths around sizes at which an engine may store a text in another way."""
_LETTERS = "aZ09 _-éß\u0130ς😀\u0301\x00\ud7ff\ue000\uffff\U0010ffff"
_ASCII = "aZ09 _-,"
_INVALID_VALUES: tuple[object, ...] = (
    None, True, 0, -1, 2**63, 10**1001, 0.1, "", "x", "1e999999999", "1E-1001", "\ud800", b"x", [], {},
    Decimal("NaN"), Decimal("Infinity"), Decimal("-0.00"), Decimal("1E+3"), Decimal("1E+1000"), 2**53 + 1,
    float("nan"), float("inf"), "NaN", "nan", "AP8=", "AP8", "2023-02-29", "2024-02-29", "2024-02-29T12:30:00",
    "2024-02-29T12:30:00.5+02:00", "0001-01-01T00:00:00+01:00", "90s", "P1M", "P3652060D", date(2024, 2, 29),
    datetime(2024, 2, 29), datetime(2024, 2, 29, 12, tzinfo=timezone(timedelta(hours=2))),  # noqa: DTZ001
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), timedelta(days=3_652_060), timedelta(seconds=-1),
    bytearray(b"x"), [float("nan")], {"a": [b"x"]}, {1: 1}, {"a": Decimal("1E+1000")}, ["\ud800"],
)  # fmt: skip


class InputGenerator:
    """Generator of inputs from a seed; equal seeds give equal inputs on every machine."""

    def __init__(
        self,
        node: Node,
        seed: int,
        seeks_boundaries: bool = True,
        examples: Sequence[Mapping[str, object]] = (),
    ) -> None:
        """Create a generator. `examples` are known useful inputs, such as those of cases."""
        self._node = node
        self._edges = find_edges(node)
        self._separators = _separators(node)
        self._numbers, self._lengths = number_bounds(node), length_bounds(node)
        self._asked, self._patterns = constraint_patterns(node), all_patterns(node)
        self._random = random.Random(seed)
        self._parsers = parsers_of(node)
        self._scalars = ScalarSource(self._random, [*self._edges.others, *self._edges.strings], cast_types(node))
        self._pairs = InputPairs({each.name: self._edges.values(each.type) for each in node.inputs}, seed)
        self._examples = [dict(each) for each in examples]
        self._types = {each.name: each.type for each in node.inputs}
        self._flags = node.flagged
        self._variation = Variation(self._random, self._value)
        self._is_tame = True
        self._solver = InputSolver(node, self._random, self._value)
        evaluator = self._solver.evaluator
        self._boundaries = BoundarySeeker(evaluator, self._random) if seeks_boundaries else None
        self._pool = InputPool(
            self._solver, self._random, lambda inputs: self._variation.vary_inputs(inputs, self._types)
        )

    @property
    def solver(self) -> InputSolver:
        """Return the solver of the node's contracts."""
        return self._solver

    def add_example(self, inputs: Mapping[str, object]) -> None:
        """Vary these inputs too from now on."""
        self._examples.append(deepcopy(dict(inputs)))

    def draw(self, aim: Sequence[Wanted] = ()) -> dict[str, object]:
        """Return new inputs; with an aim, inputs that meet the contracts and its conditions if some are found."""
        # Tame inputs pass the contracts and reach most of the node; wild ones test all edges.
        self._is_tame = self._random.random() < _TAME_SHARE
        if self._examples and self._random.random() < _CASE_SHARE:
            inputs = self._variation.vary_inputs(self._random.choice(self._examples), self._types)
        else:
            inputs = {
                each.name: self._scalars.as_text(self._value(each.name, each.type))
                for each in self._node.inputs
                if (each.default is None and each.name not in self._flags) or self._random.random() < 0.9
            }
        if self._boundaries is not None and self._random.random() < _BOUNDARY_SHARE:
            inputs = self._boundaries.seek(inputs) or inputs
        elif self._random.random() < (_PAIR_SHARE / 2 if self._solver.has_contracts else _PAIR_SHARE):
            inputs |= self._pairs.next()
        elif self._boundaries is None and self._random.random() < _ALIKE_SHARE:
            self._equalise(inputs)
        if aim:
            self._is_tame = True
            return self._solver.repair(inputs, aim).inputs
        if self._solver.has_contracts and self._random.random() < _REPAIRED_SHARE:
            self._is_tame = True
            inputs = self._pool.meet(inputs)
        if self._random.randrange(_WRONG_SHARE) == 0:
            self._invalidate(inputs)
        return inputs

    def draw_value(self, type_: Type, seed: str) -> object:
        """Return a value of a type for a completion, determined by the seed alone."""
        self._random.seed(seed)
        self._is_tame = self._random.random() < _TAME_SHARE
        return self._value("", type_)

    def vary_value(self, value: object, type_: Type, seed: str) -> object:
        """Return a value similar to another, determined by the seed and that value."""
        self._random.seed(seed)
        self._is_tame = True
        return self._variation.vary_value("", type_, value)

    def _equalise(self, inputs: dict[str, object]) -> None:
        """Set one input to the value of another, or near it. A comparison of the two has its boundary there."""
        names = sorted(inputs)
        self._random.shuffle(names)
        for name in names:
            same = [other for other in names if other != name and self._types[other] == self._types[name]]
            if same:
                near = self._variation.vary_value if self._random.random() < 0.4 else _keep
                inputs[name] = near(name, self._types[name], inputs[same[0]])
                return

    def _invalidate(self, inputs: dict[str, object]) -> None:
        names = [*inputs, "no_such_input"]
        name = self._random.choice(names)
        if name in inputs and self._random.random() < 0.2:
            del inputs[name]
        elif name in inputs and isinstance(inputs[name], list | dict) and inputs[name]:
            inputs[name] = self._invalidate_part(inputs[name])
        else:
            inputs[name] = deepcopy(self._random.choice(_INVALID_VALUES))

    def _invalidate_part(self, value: object) -> object:
        """Return a collection with one part replaced, removed or added."""
        match value:
            case list() if value:
                index = self._random.randrange(len(value))
                return [
                    self._invalidate_part(each) if position == index else each for position, each in enumerate(value)
                ]
            case dict() if value:
                key = self._random.choice(list(value))
                rest = {each: found for each, found in value.items() if each != key}
                pick = self._random.random()
                if pick < 0.3:
                    return rest
                if pick < 0.5:
                    return value | {"no_such_field": 1}
                return {each: self._invalidate_part(found) if each == key else found for each, found in value.items()}
            case _:
                return deepcopy(self._random.choice(_INVALID_VALUES))

    def _value(self, name: str, type_: Type) -> object:
        if type_ == DECIMAL:
            return self._decimal(name)
        if type_ == INTEGER:
            return self._integer(name)
        if type_ == BOOLEAN:
            return self._random.random() < 0.5
        match type_:
            case Enum(members):
                return self._random.choice(members)
            case OptionalOf(inner):
                return None if self._random.random() < 0.3 else self._value(name, inner)
            case ArrayOf(element):
                return [self._value(name, element) for _ in range(self._count(name))]
            case SetOf(element):
                return {self._value(name, element) for _ in range(self._count(name))}
            case MapOf(key, value):
                return {self._value(name, key): self._value(name, value) for _ in range(self._count(name))}
            case Record(fields):
                return {field: self._value(field, each) for field, each in fields}
            case _ if type_ == STRING:
                return self._string(name)
            case _:
                return self._scalars.draw(type_, self._is_tame, self._numbers.get(name, Bounds()))

    def _count(self, name: str) -> int:
        """Return a number of items: zero, one, a few, and rarely many."""
        if self._is_tame:
            bounds = self._lengths.get(name, Bounds())
            low = 1 if bounds.low is None else max(0, ceil(bounds.low))
            high = low + 2 if bounds.high is None else min(floor(bounds.high), low + 5)
            return min(self._random.randint(low, max(low, high)), _MAX_ITEMS)
        if self._random.random() < 0.25:
            return self._beside_bound(name, _MAX_ITEMS)
        return self._random.choice(_FEW_ITEMS if self._random.random() < 0.93 else _MANY_ITEMS)

    def _beside_bound(self, name: str, limit: int) -> int:
        """Return a length at a bound of the contracts or one beside it, else one of the node's own."""
        bounds = self._lengths.get(name, Bounds())
        known = [int(each) for each in (bounds.low, bounds.high) if each is not None]
        length = self._random.choice(known) + self._random.choice((-1, 0, 1)) if known else None
        return min(max(self._random.choice(self._edges.lengths) if length is None else length, 0), limit)

    def _decimal(self, name: str) -> Decimal:
        if self._is_tame:
            places = self._random.choice((2, 2, 4))
            bounds = self._numbers.get(name, Bounds())
            low = 0 if bounds.low is None else ceil(bounds.low * 10**places)
            high = low + 2000 * 10**places if bounds.high is None else floor(bounds.high * 10**places)
            if low <= high:
                # Biased to the low end: small numbers satisfy more conditions.
                drawn = self._random.randint(low, self._random.randint(low, high))
                return Decimal((int(drawn < 0), tuple(int(digit) for digit in str(abs(drawn))), -places))
        pick = self._random.random()
        if pick < 0.35:  # an edge, or one step beside it
            edge = self._random.choice(self._edges.decimals)
            if self._random.random() < 0.4:
                return self._random.choice(decimal_neighbours(edge))
            step = Decimal(
                (self._random.randrange(2), (self._random.randrange(2),), -self._random.choice((0, 1, 2, 5)))
            )
            return move_decimal(edge, step)
        if pick < 0.85:  # amounts of money
            digits = self._random.choice((3, 4, 5, 6, 8))
            return self._signed(self._random.randrange(10**digits), 2)
        if pick < 0.91:
            coefficient = self._random.choice(_WIDTHS) + self._random.choice((-1, 0, 1))
            return self._signed(coefficient, self._random.choice(_SCALES))
        if pick < 0.97:  # other scales and sizes, across widths that engines may treat differently
            digits = self._random.choice((1, 9, 18, 19, 20, 37, 38, 39, 40, 60))
            return self._signed(self._random.randrange(10**digits), self._random.randrange(0, 41))
        digits = self._random.choice((500, 990, 996, 999, 1000))
        return self._signed(
            self._random.randrange(10 ** (digits - 1), 10**digits), self._random.choice((0, 2, 998, 1000))
        )

    def _signed(self, coefficient: int, scale: int) -> Decimal:
        sign = int(coefficient != 0 and self._random.random() < 0.15)
        return Decimal((sign, tuple(int(digit) for digit in str(coefficient)), -scale))

    def _integer(self, name: str) -> int:
        if self._is_tame:
            bounds = self._numbers.get(name, Bounds())
            low = 1 if bounds.low is None else ceil(bounds.low)
            high = low + 120 if bounds.high is None else floor(bounds.high)
            if MIN_INTEGER <= low <= high <= MAX_INTEGER:
                return self._random.randint(low, self._random.randint(low, high))
        pick = self._random.random()
        if pick < 0.5:
            edge = self._random.choice(self._edges.integers) + self._random.choice((-1, 0, 0, 1))
            return min(max(edge, MIN_INTEGER), MAX_INTEGER)
        if pick < 0.85:
            return self._random.randrange(-10, 1000)
        if pick < 0.93:
            sign, width = self._random.choice((-1, 1)), self._random.choice((31, 32, 53, 62))
            return sign * (1 << width) + self._random.choice((-1, 0, 1))
        return self._random.randrange(MIN_INTEGER, MAX_INTEGER + 1)

    def _string(self, name: str) -> str:
        if name in self._asked and self._random.random() < (0.95 if self._is_tame else 0.5):
            return draw_text(self._asked[name], self._random)
        if self._patterns and self._random.random() < _PATTERN_SHARE:
            return draw_text(self._random.choice(self._patterns), self._random)
        if self._parsers and self._random.random() < _PARSED_SHARE:
            return draw_format(self._random, self._random.choice(self._parsers))
        bounds = self._lengths.get(name) if self._is_tame or self._random.random() < 0.5 else None
        known = self._edges.strings
        if bounds is not None:
            known = tuple(each for each in known if bounds.admit(len(each)))
        if known and self._random.random() < (0.7 if self._is_tame else 0.4):
            return self._random.choice(known)
        if self._separators and self._random.random() < _JOINED_SHARE:
            return self._join_texts()
        length = self._beside_bound(name, 1000) if self._random.random() < 0.7 else self._random.choice(_LENGTHS)
        if bounds is not None and self._random.random() < 0.8:
            low = max(0, ceil(bounds.low or 0))
            length = low if bounds.high is None else self._random.randint(low, max(low, floor(bounds.high)))
        letters = _LETTERS if self._random.random() < 0.6 else _ASCII
        return "".join(self._random.choice(letters) for _ in range(min(length, 1000)))

    def _join_texts(self) -> str:
        """Return texts of the node and numbers, joined by a separator at which the node splits texts."""
        separator = self._random.choice(self._separators)
        parts = [
            self._random.choice(self._edges.strings) if self._random.random() < 0.5 else str(self._integer(""))
            for _ in range(self._random.choice((1, 2, 2, 3, 3, 4, 6)))
        ]
        return separator.join(parts)


def _keep(_name: str, _type: Type, value: object) -> object:
    return value


def _separators(node: Node) -> list[str]:
    """Return the texts at which the node splits or searches texts."""
    calls = [each for each in node.expressions() if isinstance(each, Call) and each.op in _SPLITS]
    values = [each.args[1].value for each in calls if isinstance(each.args[1], Literal)]
    return list(dict.fromkeys(each for each in values if isinstance(each, str) and each))
