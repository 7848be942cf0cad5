"""The policies of a request as a comment beside it. The Host applies them, so generated code does not contain them."""

from __future__ import annotations

from collections.abc import Iterator

from vesper.language.ir import nodes as ir
from vesper.policies.budget import Budget, budgets_of
from vesper.policies.retry import Rule
from vesper.policies.settings import effective

_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "m"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))


def describe_policies(node: ir.Node, request: ir.Request) -> str:
    """Describe the policies of a request, including those of its node; empty without policies."""
    if request.effect_class == "wait":
        return ""
    return "; ".join(_describe(effective(node.grants.policy, request.policy), request.effect_class))


def _describe(policy: ir.Policy, effect_class: str) -> Iterator[str]:
    if isinstance(timeout := policy.get("timeout_us"), int):
        yield f"timeout {_format_duration(timeout)}"
    rule = Rule.of(policy, effect_class)
    if rule.attempts > 1 and rule.is_repeatable:
        yield f"at most {rule.attempts} attempts on {' or '.join(rule.codes)}{_describe_backoff(rule, policy)}"
    if isinstance(failures := policy.get("breaker_failures"), int):
        within, open_for = _format_optional(policy, "breaker_within_us"), _format_optional(policy, "breaker_open_us")
        yield (
            f"circuit breaker opens after {_format_count(failures, 'failure')}{within and f' within {within}'}"
            f"{open_for and f' for {open_for}'}"
        )
    if isinstance(limit := policy.get("rate_limit"), int):
        per = _format_optional(policy, "rate_per_us")
        yield f"rate limit {limit}{per and f' per {per}'}"
    if isinstance(places := policy.get("concurrency"), int):
        yield f"at most {places} at a time"
    yield from map(describe_budget, budgets_of(policy))


def describe_budget(budget: Budget) -> str:
    """Describe a budget: `budget of call ask: 0.50 USD, 20,000 tokens`."""
    limits = [
        budget.usd and f"{budget.usd} USD",
        budget.tokens and f"{budget.tokens:,} tokens",
        budget.calls and _format_count(budget.calls, "call"),
        budget.time_us and _format_duration(budget.time_us),
    ]
    beyond = "" if budget.on_exceeded == "block" else f", {budget.on_exceeded} beyond"
    return f"budget of {budget.scope} {budget.name}: {', '.join(each for each in limits if each)}{beyond}"


def _describe_backoff(rule: Rule, policy: ir.Policy) -> str:
    if not rule.base_us:
        return ""
    longest = f" up to {_format_duration(rule.max_us)}" if "backoff_max_us" in policy else ""
    jitter = ", full jitter" if rule.is_jittered else ""
    return f", backoff from {_format_duration(rule.base_us)} times {rule.factor}{longest}{jitter}"


def _format_optional(policy: ir.Policy, key: str) -> str:
    value = policy.get(key)
    return _format_duration(value) if isinstance(value, int) else ""


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _format_duration(microseconds: int) -> str:
    """Write a duration in the largest unit that divides it: `30s`, `200ms`, `90s`."""
    size, unit = next((size, unit) for size, unit in _UNITS if microseconds % size == 0)
    return f"{microseconds // size}{unit}"
