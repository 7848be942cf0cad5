"""A policy in the form of the IR (docs/spec/ir.md), and readers of its keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from vesper.policies.budget import Budget, budgets_of
from vesper.values.vesper_error import VesperError

Policy: TypeAlias = Mapping[str, int | str | tuple[str, ...] | tuple[Budget, ...]]

MAX_COUNT = 1_000_000_000
MAX_US = 1_000_000_000_000_000
"""Some 31 years. Sums of a few of these and the time since 1970 stay below 2**53, where every store can count."""

MAX_BREAKER_FAILURES = 10_000
"""Largest `failures` of a circuit breaker, whose moments are kept."""
MAX_CONCURRENCY = 10_000
"""Largest `concurrency`, whose leases are kept."""

_OF_RETRY = frozenset(("attempts", "retry_on", "backoff_us", "backoff_max_us", "backoff_factor", "jitter"))
_OF_ONE_EXECUTION = frozenset(("expected_latency_ms", "memory_limit_mb", "total_timeout_us"))


class PolicyError(VesperError):
    """A policy that cannot be applied; the message names the key."""


def effective(node: Policy, step: Policy) -> Policy:
    """Return the policy of one effect: that of its step, completed from that of its node.

    A step's `retry` replaces the node's as a whole: `attempts` of one and `backoff` of the other would be a policy that
    neither declares. A request is charged to the budgets of both.
    """
    ours = {key: value for key, value in node.items() if not (key in _OF_RETRY and "attempts" in step)}
    found = {**ours, **{key: value for key, value in step.items() if key not in _OF_ONE_EXECUTION}}
    budgets = (*budgets_of(node), *budgets_of(step))
    return {**found, "budgets": budgets} if budgets else found


def number(policy: Policy, key: str, most: int = MAX_COUNT, least: int = 1) -> int | None:
    """Return a whole number of the policy; None if it is absent."""
    value = policy.get(key)
    if value is None:
        return None
    if type(value) is not int or not least <= value <= most:
        raise PolicyError(f"policy: `{key}` must be a whole number from {least:,} to {most:,}, not {value!r}")
    return value


def word(policy: Policy, key: str, among: tuple[str, ...]) -> str | None:
    """Return a word of the policy; None if it is absent."""
    value = policy.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or value not in among:
        raise PolicyError(f"policy: `{key}` must be one of {', '.join(among)}, not {value!r}")
    return value


def words(policy: Policy, key: str) -> tuple[str, ...] | None:
    """Return a list of words of the policy; None if it is absent."""
    value = policy.get(key)
    if value is None:
        return None
    texts = tuple(each for each in value if isinstance(each, str)) if isinstance(value, tuple) else None
    if texts is None or texts != value:
        raise PolicyError(f"policy: `{key}` must be a list of codes, not {value!r}")
    return texts
