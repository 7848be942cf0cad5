"""Records; in Python, dicts with the fields in declared order."""

from __future__ import annotations

from vesper.kernels.runtime.equality import are_equal


def equal(left: object, right: object) -> bool:
    return are_equal(left, right)


def not_equal(left: object, right: object) -> bool:
    return not are_equal(left, right)
