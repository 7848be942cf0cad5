"""Booleans. `AND` and `OR` are forms of the IR, because they decide which operands are evaluated."""

from __future__ import annotations


def not_(value: bool) -> bool:
    return not value


def equal(left: bool, right: bool) -> bool:
    return left == right


def not_equal(left: bool, right: bool) -> bool:
    return left != right


def text(value: bool) -> str:
    return "true" if value else "false"
