"""Random selection of sampled rows, each with the same independent probability."""

from __future__ import annotations

import random

_MAX_SINGLE_DRAWS = 16
"""Number of rows up to which each row is drawn separately."""


def how_many(rows: int, share: float) -> int:
    """Return a binomial count: how many of `rows` are sampled with probability `share`.

    A batch has millions of rows, so rows are not drawn one by one. Given one uniform number per row, those below the
    share are sampled. The median of these numbers has a beta distribution: if it is below the share, so is the lower
    half; otherwise the upper half is not. Each round halves the rows that remain.
    """
    if share >= 1:
        return rows
    found = 0
    while rows > _MAX_SINGLE_DRAWS:
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
    """Return `count` random row indices in ascending order."""
    return list(range(rows)) if count >= rows else sorted(random.sample(range(rows), count))
