"""Members of an enum; in Python, plain strings."""

from __future__ import annotations


def equal(left: str, right: str) -> bool:
    return left == right


def not_equal(left: str, right: str) -> bool:
    return left != right


def text(value: str) -> str:
    return value
