"""Measures of a backtest: segments (`--by`), sums (`--sum`) and the selection (`--where`).

Each is a field or an expression of the language over inputs and outputs, checked for each version and compiled to a
function that an engine runs. A segment and the selection are those of the version before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum as PythonEnum

from vesper.changes.backtest.cases import Case
from vesper.changes.backtest.replay import ENGINE, Ended
from vesper.compiler import Compiled
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.host.masking import SENSITIVE, Masks, masks_of_versions
from vesper.trace.expressions import (
    BadExpression,
    BoundExpression,
    Expressions,
    Key,
    Loader,
    Name,
    Names,
    names_of_inputs,
)
from vesper.values.model import Value
from vesper.values.types import BOOLEAN, DECIMAL, INTEGER, OptionalOf
from vesper.values.vesper_error import VesperError


class BadMeasure(VesperError, ValueError):
    """An expression of a measure cannot be used; the message has the reason."""


class Missing(PythonEnum):
    """The reason why a run has no value of a measure."""

    NO_OUTPUT = "no output"
    """The version did not return."""
    FAILED = "the expression fails"


@dataclass(frozen=True, slots=True)
class Measure:
    """An expression, for each version that has its names."""

    text: str
    before: Side | None
    after: Side | None

    def value(self, ended: Ended, case: Case, is_after: bool) -> Value | Missing:
        side = self.after if is_after else self.before
        return Missing.NO_OUTPUT if side is None else side.value(ended, case)


@dataclass(frozen=True, slots=True)
class Side:
    """An expression over the inputs and outputs of one version."""

    compiled: Compiled
    bound: BoundExpression

    def value(self, ended: Ended, case: Case) -> Value | Missing:
        names = dict(names_of_inputs(self.compiled, case.inputs, case.now))
        if isinstance(ended, Returned):
            names |= _names_of_outputs(self.compiled, ended.value)
        if not self.bound.can_evaluate(names):
            return Missing.NO_OUTPUT
        found = self.bound.ask(ENGINES[ENGINE], names)
        return found.value["value"] if isinstance(found, Returned) else Missing.FAILED


def _names_of_outputs(compiled: Compiled, values: Mapping[str, Value]) -> dict[Key, Name]:
    return {("output", each.name): Name(each.name, each.type, values.get(each.name)) for each in compiled.node.outputs}


@dataclass(frozen=True, slots=True)
class Measures:
    """All measures of one backtest."""

    by: tuple[Measure, ...] = ()
    sums: tuple[Measure, ...] = ()
    where: Measure | None = None


class MeasureReader:
    """Reads the expressions of measures of two versions."""

    def __init__(self, before: Compiled, after: Compiled, reveals: bool = False) -> None:
        self._versions = (before, after)
        self._reveals = reveals
        loader = Loader()
        self._expressions = tuple(Expressions(each, loader) for each in self._versions)
        self._masks = masks_of_versions(*self._versions)

    def measures(self, by: Iterable[str] = (), sums: Iterable[str] = (), where: str | None = None) -> Measures:
        """Return the measures. Raises `BadMeasure`."""
        return Measures(
            tuple(self._read(each, "--by") for each in by),
            tuple(self._sum(each) for each in sums),
            None if where is None else self._where(where),
        )

    def _sum(self, text: str) -> Measure:
        found = self._read(text, "--sum")
        for side in (found.before, found.after):
            type_ = None if side is None else side.bound.type
            inner = type_.inner if isinstance(type_, OptionalOf) else type_
            if inner not in (None, INTEGER, DECIMAL):
                raise BadMeasure(f"--sum `{text}` is {inner}: exact sums are of integers and decimals")
        return found

    def _where(self, text: str) -> Measure:
        found = self._read(text, "--where")
        if found.before is None or found.before.bound.type != BOOLEAN:
            raise BadMeasure(f"--where `{text}` is no condition over the version before: write `input.amount > 100`")
        return found

    def _read(self, text: str, option: str) -> Measure:
        sides: list[Side | None] = []
        problem: BadExpression | None = None
        for compiled, expressions, masks in zip(self._versions, self._expressions, self._masks, strict=True):
            names: Names = {**names_of_inputs(compiled, {}), **_names_of_outputs(compiled, {})}
            try:
                bound = expressions.parse(text, names, None, option)
            except BadExpression as error:
                problem = problem or error
                sides.append(None)
                continue
            self._check_sensitive(bound, masks, option)
            sides.append(Side(compiled, bound))
        if problem is not None and not any(sides):
            raise BadMeasure(str(problem))
        return Measure(text, *sides)

    def _check_sensitive(self, bound: BoundExpression, masks: Masks, option: str) -> None:
        for kind, name in bound.mentions:
            if not self._reveals and masks.named(kind, name, "shown") == SENSITIVE:
                raise BadMeasure(f"{option} reads the sensitive {kind} `{name}`; --reveal shows values of it")


@dataclass(slots=True)
class ExactSum:
    """A sum of integers and decimals without rounding."""

    by_scale: dict[int, int] = field(default_factory=dict)
    """Sums of the digits, by the number of digits after the point."""

    def add(self, value: int | Decimal) -> None:
        sign, digits, exponent = (value if isinstance(value, Decimal) else Decimal(value)).as_tuple()
        assert isinstance(exponent, int)  # a decimal of the language is finite
        number = int("".join(map(str, digits)))
        scale, number = (-exponent, number) if exponent <= 0 else (0, number * 10**exponent)
        self.by_scale[scale] = self.by_scale.get(scale, 0) + (-number if sign else number)

    def merge(self, other: ExactSum) -> None:
        for scale, number in other.by_scale.items():
            self.by_scale[scale] = self.by_scale.get(scale, 0) + number

    @property
    def scale(self) -> int:
        return max(self.by_scale, default=0)

    @property
    def digits(self) -> int:
        """The sum as a number of units of 10**-scale."""
        return sum(number * 10 ** (self.scale - scale) for scale, number in self.by_scale.items())

    def __str__(self) -> str:
        return digits_text(self.digits, self.scale)

    def minus(self, other: ExactSum) -> str:
        """Return the difference as text."""
        scale = max(self.scale, other.scale)
        left, right = (each.digits * 10 ** (scale - each.scale) for each in (self, other))
        return digits_text(left - right, scale)


def digits_text(number: int, scale: int) -> str:
    """Return units of 10**-scale as plain text."""
    text = str(abs(number)).rjust(scale + 1, "0")
    whole, rest = (text[:-scale], text[-scale:]) if scale else (text, "")
    return ("-" if number < 0 else "") + whole + (f".{rest}" if rest else "")
