"""Strings: sequences of code points, compared as they are."""

from __future__ import annotations


def length(value: str) -> int:
    return len(value)


def equal(left: str, right: str) -> bool:
    return left == right


def not_equal(left: str, right: str) -> bool:
    return left != right
