"""Operations over every ordered type."""

from __future__ import annotations

from collections.abc import Sequence

from vesper.kernels.order import Ordered, order_of
from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode


def min(left: Ordered, right: Ordered, declared: Sequence[str] = ()) -> Ordered:
    place = order_of(declared)
    return right if place(right) < place(left) else left


def max(left: Ordered, right: Ordered, declared: Sequence[str] = ()) -> Ordered:
    place = order_of(declared)
    return right if place(left) < place(right) else left


def clamp(value: Ordered, low: Ordered, high: Ordered, declared: Sequence[str] = ()) -> Ordered:
    place = order_of(declared)
    if place(high) < place(low):
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    if place(value) < place(low):
        return low
    return high if place(high) < place(value) else value
