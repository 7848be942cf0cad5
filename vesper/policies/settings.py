"""A policy as the IR holds it (docs/spec/ir.md), and how a machine reads its part of it."""

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
    """A policy, or the record of a decision, that no machine can work with; the message names the key."""


def effective(node: Policy, step: Policy) -> Policy:
    """What holds for one effect: the policies of its step, and of its node those that the step does not have.

    A step's `retry` stands for the node's as a whole: `attempts` of one and `backoff` of the other would be a policy
    that nobody wrote. A request counts for the budgets of both.
    """
    ours = {key: value for key, value in node.items() if not (key in _OF_RETRY and "attempts" in step)}
    found = {**ours, **{key: value for key, value in step.items() if key not in _OF_ONE_EXECUTION}}
    budgets = (*budgets_of(node), *budgets_of(step))
    return {**found, "budgets": budgets} if budgets else found


def number(policy: Policy, key: str, most: int = MAX_COUNT, least: int = 1) -> int | None:
    """A whole number of the policy; nothing where it has none."""
    value = policy.get(key)
    if value is None:
        return None
    if type(value) is not int or not least <= value <= most:
        raise PolicyError(f"policy: `{key}` must be a whole number from {least:,} to {most:,}, not {value!r}")
    return value


def word(policy: Policy, key: str, among: tuple[str, ...]) -> str | None:
    """A word of the policy; nothing where it has none."""
    value = policy.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or value not in among:
        raise PolicyError(f"policy: `{key}` must be one of {', '.join(among)}, not {value!r}")
    return value


def words(policy: Policy, key: str) -> tuple[str, ...] | None:
    """A list of words of the policy; nothing where it has none."""
    value = policy.get(key)
    if value is None:
        return None
    texts = tuple(each for each in value if isinstance(each, str)) if isinstance(value, tuple) else None
    if texts is None or texts != value:
        raise PolicyError(f"policy: `{key}` must be a list of codes, not {value!r}")
    return texts
