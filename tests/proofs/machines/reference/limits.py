"""Bounds, times and names that docs/spec/kernel.md states."""

from __future__ import annotations

import json

from tests.proofs.machines.messages import process_pb2
from tests.proofs.machines.reference.refusals import demand

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DEFAULT_LEASE_US = 30 * SECOND_US
LONGEST_TTL_US = 10 * 366 * 24 * HOUR_US
MOST_BYTES = 1_000
MAX_AMOUNT = 1 << 53
MAX_AT_A_TIME = 1 << 20
COUNTERS = ("llm_calls", "tool_calls", "agent_hops", "iterations", "tokens_in", "tokens_out")
PRIORITIES = range(6)
REASONS = range(9)


def check_name(text: str, what: str) -> None:
    demand(len(text.encode()) <= MOST_BYTES, f"{what} is too long")


def worker_name(text: str) -> str:
    demand(text != "", "a worker has a name")
    check_name(text, "worker")
    return text


def lease_end(length_us: int, now_us: int) -> int:
    length_us = length_us or DEFAULT_LEASE_US
    demand(SECOND_US <= length_us <= HOUR_US, "a lease is from a second to an hour")
    return now_us + length_us


def check_reason(reason: int) -> None:
    demand(reason in REASONS, "there is no such reason")


def check_json(text: str) -> None:
    try:
        json.loads(text)
        is_json = True
    except ValueError:
        is_json = False
    demand(is_json, "it is no JSON")


def check_usage(usage: process_pb2.Usage) -> None:
    for name in COUNTERS:
        demand(0 <= getattr(usage, name) <= MAX_AMOUNT, f"{name} is out of bounds")


def check_quota(quota: process_pb2.Quota) -> None:
    for field, value in quota.ListFields():
        demand(0 <= value <= MAX_AMOUNT, f"{field.name} is out of bounds")


def add_usage(usage: process_pb2.Usage, more: process_pb2.Usage) -> None:
    for field, value in more.ListFields():
        setattr(usage, field.name, getattr(usage, field.name) + value)


def exceeded_counters(quota: process_pb2.Quota, usage: process_pb2.Usage) -> list[str]:
    """Return the counters that are above their limit: a quota of 3 admits three."""
    set_limits = {field.name.removeprefix("max_"): value for field, value in quota.ListFields()}
    return [name for name in COUNTERS if name in set_limits and getattr(usage, name) > set_limits[name]]


def time_limit(quota: process_pb2.Quota, created_us: int) -> int | None:
    return created_us + quota.timeout_us if quota.HasField("timeout_us") else None


def exceeded(quota: process_pb2.Quota, usage: process_pb2.Usage, created_us: int, now_us: int) -> list[str]:
    until_us = time_limit(quota, created_us)
    return exceeded_counters(quota, usage) + (["time"] if until_us is not None and until_us <= now_us else [])


def remaining(
    quota: process_pb2.Quota, usage: process_pb2.Usage, created_us: int, now_us: int
) -> process_pb2.RemainingBudget:
    """Return what is left, never below 0; what is unlimited is absent."""
    left = process_pb2.RemainingBudget()
    for field, value in quota.ListFields():
        if field.name == "timeout_us":
            left.time_remaining_us = max(0, created_us + value - now_us)
        else:
            name = field.name.removeprefix("max_")
            setattr(left, f"{name}_remaining", max(0, value - getattr(usage, name)))
    return left
