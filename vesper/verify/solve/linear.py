"""Operations that are linear in their arguments, as coefficients at the current values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from vesper.verify.solve.numbers import to_number

_ONE = Fraction(1)
_MICROSECONDS = {"microseconds": 1, "milliseconds": 1_000, "seconds": 10**6, "minutes": 6 * 10**7, "hours": 36 * 10**8}
_MICROSECONDS["days"] = 24 * _MICROSECONDS["hours"]
_FIXED: dict[str, tuple[Fraction, ...]] = {
    **{f"{family}.add": (_ONE, _ONE) for family in ("integer", "decimal", "float", "duration", "timestamp")},
    **{f"{family}.subtract": (_ONE, -_ONE) for family in ("integer", "decimal", "float", "duration", "timestamp")},
    **{f"{family}.negate": (-_ONE,) for family in ("integer", "decimal", "float", "duration")},
    **{f"duration.from_{unit}": (Fraction(size),) for unit, size in _MICROSECONDS.items()},
    **{
        f"{family}.{verb}": (_ONE,)
        for family in ("decimal", "float")
        for verb in ("floor", "ceil", "trunc", "round", "to_integer")
    },
    "timestamp.since": (_ONE, -_ONE),
    "date.add_days": (_ONE, _ONE),
    "date.days_between": (-_ONE, _ONE),
    "decimal.from_integer": (_ONE,),
    "decimal.to_float": (_ONE,),
    "float.to_decimal": (_ONE,),
    "integer.to_float": (_ONE,),
    "decimal.normalize": (_ONE,),
    "duration.total_microseconds": (_ONE,),
    "duration.total_seconds": (Fraction(1, 10**6),),
    "timestamp.epoch_microseconds": (_ONE,),
    "timestamp.epoch_seconds": (Fraction(1, 10**6),),
    "timestamp.from_epoch_microseconds": (_ONE,),
    "timestamp.from_epoch_seconds": (Fraction(10**6),),
    "timestamp.to_date": (Fraction(1, _MICROSECONDS["days"]),),
    "date.to_timestamp": (Fraction(_MICROSECONDS["days"]),),
    "timestamp.truncate": (_ONE,),
}


def coefficients(op: str, values: Sequence[Any]) -> Mapping[int, Fraction] | None:
    """Return the change of the result for a unit of each argument; None for other operations."""
    fixed = _FIXED.get(op)
    if fixed is not None:
        return dict(enumerate(fixed))
    family, _, verb = op.partition(".")
    if family not in ("integer", "decimal", "float", "duration") or verb not in ("multiply", "divide", "div", "ratio"):
        return None
    left, right = to_number(values[0]), to_number(values[1])
    if left is None or right is None:
        return None
    if verb == "multiply":
        return {0: right, 1: left}
    if right == 0:
        return {1: _ONE}
    return {0: 1 / right, 1: -left / right**2}
