"""Limits of one symbolic evaluation, and the two modes of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one symbolic evaluation.

    For a proof every collection may have any length, and an operation without an encoding is an uninterpreted function.
    To find an input, collections and loops are unrolled a few times, so that a model is nearly always a real witness.
    """

    max_items: int = 3
    """Items of a collection and rounds of a loop that are explored when finding."""
    is_finding: bool = False
    max_terms: int = 200_000
    """Applied functions and facts of one context; more is `TooLarge`."""
    max_unrolled: int = 40
    """Items up to which a collection of known capacity is unrolled in a proof."""


PROOF = Bounds()
FINDING = Bounds(is_finding=True)
MAX_DEPTH = 150
"""Nesting of expressions that an evaluation follows, within Python's own limit on frames."""


class NotEncodable(Exception):
    """A node, or a part of it, that the solver does not read; the text is the reason."""


class TooDeep(NotEncodable):
    """Expressions or blocks nest deeper than `MAX_DEPTH`."""


class TooLarge(NotEncodable):
    """The terms of a node are more than `Bounds.max_terms`."""
