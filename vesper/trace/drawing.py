"""Which of many rows are sampled: as many as if each had been drawn for alone, and any of them alike."""

from __future__ import annotations

import random

_FEW = 16
"""So many are drawn for one by one."""


def how_many(rows: int, share: float) -> int:
    """How many of so many rows are sampled, where each is with this chance: a binomial number.

    Not row by row: a batch has millions. Think of a random number for each row; those below the share are sampled. The
    middle one of all these numbers in order has a beta distribution. Where it is below the share, so is the lower half;
    where it is not, nor is the upper half. What is left to look at is one half, each time.
    """
    if share >= 1:
        return rows
    found = 0
    while rows > _FEW:
        middle = rows // 2 + 1
        number = random.betavariate(middle, rows + 1 - middle)
        if number < share:
            found += middle
            rows -= middle
            share = (share - number) / (1 - number)
        else:
            rows = middle - 1
            share = min(share / number, 1.0) if number else 0.0
    return found + sum(random.random() < share for _ in range(rows))


def places(rows: int, count: int) -> list[int]:
    """So many of the rows, in their order; which ones is drawn."""
    return list(range(rows)) if count >= rows else sorted(random.sample(range(rows), count))
