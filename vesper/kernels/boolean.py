"""Booleans. `AND` and `OR` are forms of the IR, because they decide which operands are evaluated."""

from __future__ import annotations

from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode


def not_(value: bool) -> bool:
    return not value


def equal(left: bool, right: bool) -> bool:
    return left == right


def not_equal(left: bool, right: bool) -> bool:
    return left != right


def text(value: bool) -> str:
    return "true" if value else "false"


def parse(value: str) -> bool:
    if value not in ("true", "false"):
        raise Raised(ErrorCode.BAD_FORMAT)
    return value == "true"
