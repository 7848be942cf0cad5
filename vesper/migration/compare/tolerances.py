"""Tolerances between two numbers of an output. All arithmetic is exact: `0.01` is a hundredth."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from vesper.config.migration import Tolerance
from vesper.effects.settings import ConfigError
from vesper.language.ir.nodes import Node
from vesper.values.types import DECIMAL, FLOAT, INTEGER, ArrayOf, MapOf, OptionalOf, Record, Type

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[\])*(?:\.[A-Za-z_][A-Za-z0-9_]*(?:\[\])*)*", re.ASCII)
_PART = re.compile(r"\[\]|[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE]-?[0-9]{1,2})?", re.ASCII)
_NUMBERS = (INTEGER, DECIMAL, FLOAT)


class BadTolerance(ConfigError):
    """A tolerance does not fit its node. The message contains the field, the reason and the alternatives."""

    def __init__(self, message: str) -> None:
        super().__init__("vesper.toml, [migration.nodes]", message)


@dataclass(frozen=True, slots=True)
class Allowance:
    """A tolerance as exact numbers."""

    tolerance: Tolerance
    absolute: Fraction
    relative: Fraction

    @property
    def canonical(self) -> str:
        """The tolerance in canonical spelling: `0.10` and `0.1` are equal."""
        return f"{self.tolerance.field} {self.absolute} {self.relative} {self.tolerance.version}"


def allowances_of(node: Node, tolerances: Sequence[Tolerance]) -> dict[str, Allowance]:
    """Return the tolerances by field, in canonical order. Raises `BadTolerance`."""
    found: dict[str, Allowance] = {}
    for each in sorted(tolerances, key=lambda each: each.field):
        if each.field in found:
            raise BadTolerance(f"{node.node_id}: there are two tolerances for `{each.field}`; keep one")
        found[each.field] = _allowance(node, each)
    return found


def is_within(allowed: Allowance, left: object, right: object) -> bool:
    """Return True where the distance of two numbers is within either limit.

    The relative limit refers to the larger of the two, so the result does not depend on the leader.
    """
    one, other = _exact(left), _exact(right)
    if one is None or other is None or type(left) is not type(right):
        return False
    return abs(one - other) <= max(allowed.absolute, allowed.relative * max(abs(one), abs(other)))


def _exact(value: object) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float):
        return None
    is_finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
    return Fraction(value) if is_finite else None


def _allowance(node: Node, tolerance: Tolerance) -> Allowance:
    where = f"{node.node_id}: the tolerance for `{tolerance.field}`"
    if not _FIELD.fullmatch(tolerance.field):
        raise BadTolerance(f"{where} names no output: write `fee`, or `lines[].total` for one of each line")
    type_ = _type_at(node, tolerance.field, where)
    if type_ not in _NUMBERS:
        raise BadTolerance(f"{where}: it is {type_}, and only an integer, a decimal or a float can be close to another")
    if tolerance.absolute is None and tolerance.relative is None:
        raise BadTolerance(f"{where} allows nothing: say `absolute`, `relative` or both")
    if tolerance.version < 1:
        raise BadTolerance(f"{where} has the version {tolerance.version}; versions count from 1")
    absolute, relative = (_limit(each, where) for each in (tolerance.absolute, tolerance.relative))
    if relative >= 1:
        raise BadTolerance(f"{where}: relative {tolerance.relative} allows any number; it is less than 1, as in 0.001")
    return Allowance(tolerance, absolute, relative)


def _limit(text: str | None, where: str) -> Fraction:
    if text is None:
        return Fraction(0)
    if not _NUMBER.fullmatch(text):
        raise BadTolerance(f"{where}: `{text[:40]}` is no number that is 0 or more, such as 0.01")
    return Fraction(text)


def _type_at(node: Node, field: str, where: str) -> Type:
    current: Type = Record(tuple((each.name, each.type) for each in node.outputs))
    for part in _PART.findall(field):
        if isinstance(current, OptionalOf):
            current = current.inner
        if part == "[]":
            if not isinstance(current, ArrayOf | MapOf):
                raise BadTolerance(f"{where}: `[]` stands for what an array or a map holds, and this is {current}")
            current = current.element if isinstance(current, ArrayOf) else current.value
            continue
        if isinstance(current, ArrayOf | MapOf):
            raise BadTolerance(f"{where}: `{part}` is looked for in {current}; write `[]` for what it holds")
        if not isinstance(current, Record):
            raise BadTolerance(f"{where}: `{part}` is looked for in {current}, which has no fields")
        found = current.field(part)
        if found is None:
            names = ", ".join(name for name, _ in current.fields) or "none"
            raise BadTolerance(f"{where}: there is no `{part}`; there are {names}")
        current = found
    return current.inner if isinstance(current, OptionalOf) else current
