"""Policies of steps and nodes as numbers for the Host: microseconds, counts, codes (docs/spec/effects.md)."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import cast

from vesper.language.check.expressions.literals import Unread, read_literal
from vesper.language.check.flow.handlers import help_for_code
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.ir.failures import is_code
from vesper.language.ir.statements import Policy
from vesper.language.syntax import shapes
from vesper.language.syntax.fields import Fields, expect_mapping, expect_scalar, expect_sequence
from vesper.language.syntax.shape import Shape
from vesper.language.syntax.yaml_tree import Tree
from vesper.policies.budget import Budget, OnExceeded, Scope
from vesper.policies.settings import MAX_BREAKER_FAILURES, MAX_CONCURRENCY
from vesper.values.types import DECIMAL, DURATION, INTEGER

_MICROSECOND = timedelta(microseconds=1)
_Settings = dict[str, int | str | tuple[str, ...] | tuple[Budget, ...]]
_HUNDREDTH = Decimal("0.01")


MAX_TOKENS = 1_000_000_000_000


class PolicyReader:
    """Reads policy settings from YAML; reports values outside their limits."""

    def __init__(self, bag: DiagnosticBag) -> None:
        self._bag = bag

    def step_policy(self, literals: dict[str, Tree]) -> Policy:
        """Return the `timeout` and `retry` settings of one step."""
        found: _Settings = {}
        if "timeout" in literals:
            self._duration(literals["timeout"], "timeout", "timeout_us", found)
        if "retry" in literals:
            self._retry(literals["retry"], found)
        return found

    def node_policy(self, node_id: str, policies: dict[str, Tree], performance: dict[str, Tree]) -> Policy:
        """Return the policy settings of a node, including its `performance` limits."""
        found: _Settings = dict(self.step_policy(policies))
        if "rate_limit" in policies:
            entry = self._entries(policies["rate_limit"], "rate_limit", shapes.RATE_LIMIT)
            self._count(entry.get("limit"), "limit", "rate_limit", found)
            self._duration(entry.get("per"), "per", "rate_per_us", found)
        if "circuit_breaker" in policies:
            entry = self._entries(policies["circuit_breaker"], "circuit_breaker", shapes.CIRCUIT_BREAKER)
            self._count(entry.get("failures"), "failures", "breaker_failures", found, maximum=MAX_BREAKER_FAILURES)
            self._duration(entry.get("within"), "within", "breaker_within_us", found)
            self._duration(entry.get("open_for"), "open_for", "breaker_open_us", found)
        self._count(policies.get("concurrency"), "concurrency", "concurrency", found, maximum=MAX_CONCURRENCY)
        if "budget" in policies and (budget := self.read_budget(policies["budget"], "agent", node_id)) is not None:
            found["budgets"] = (budget,)
        self._count(performance.get("expected_latency_ms"), "expected_latency_ms", "expected_latency_ms", found)
        self._count(performance.get("memory_limit_mb"), "memory_limit_mb", "memory_limit_mb", found)
        seconds: _Settings = {}
        self._count(performance.get("timeout_seconds"), "timeout_seconds", "total", seconds)
        if isinstance(total := seconds.get("total"), int):
            found["total_timeout_us"] = total * 1_000_000
        return found

    def read_budget(self, tree: Tree, scope: Scope, name: str) -> Budget | None:
        """Read a budget. None after reporting an error in it."""
        entry = self._fields(tree, "budget", shapes.BUDGET_LIMITS)
        if entry is None:
            return None
        found: _Settings = {}
        usd = self._decimal(entry.get("usd"), "usd", Decimal(0), None)
        self._count(entry.get("tokens"), "tokens", "tokens", found, maximum=MAX_TOKENS)
        self._count(entry.get("calls"), "calls", "calls", found)
        self._duration(entry.get("time"), "time", "time_us", found)
        on_exceeded = entry.scalar("on_exceeded")
        if on_exceeded is not None and on_exceeded.text not in ("block", "warn", "allow"):
            expected = "`block`, `warn` or `allow`"
            self._bag.error(Code.BAD_LITERAL, on_exceeded.span, text=on_exceeded.text, expected=expected)
            return None
        share = self._decimal(entry.get("alert_at"), "alert_at", Decimal(0), Decimal(1))
        if share is not None and share % _HUNDREDTH:
            self._bag.error(Code.BAD_LITERAL, tree.span, text=f"{share:f}", expected="a share in steps of 0.01: `0.8`")
            return None
        if not any(entry.get(key) is not None for key in ("usd", "tokens", "calls", "time")):
            help_ = "or `tokens`, `calls`, `time`"
            self._bag.error(Code.MISSING_KEY, tree.span, where="`budget`", key="usd", help=help_)
        amounts = cast("dict[str, int]", found)
        return Budget(
            scope,
            name,
            None if usd is None else f"{usd:f}",
            amounts.get("tokens"),
            amounts.get("calls"),
            amounts.get("time_us"),
            "block" if on_exceeded is None else cast("OnExceeded", on_exceeded.text),
            None if share is None else int(share * 100),
        )

    def read_duration_us(self, tree: Tree, key: str) -> int | None:
        """Read a positive duration in microseconds. None after reporting an error."""
        found: _Settings = {}
        self._duration(tree, key, "us", found)
        us = found.get("us")
        return us if isinstance(us, int) else None

    def read_count(self, tree: Tree, key: str, maximum: int) -> int | None:
        """Read a number from 1 to the maximum. None after reporting an error."""
        found: _Settings = {}
        self._count(tree, key, "count", found, maximum)
        number = found.get("count")
        return number if isinstance(number, int) else None

    def _retry(self, tree: Tree, found: _Settings) -> None:
        entry = self._fields(tree, "retry", shapes.RETRY)
        if entry is None:
            return
        self._count(entry.get("attempts"), "attempts", "attempts", found, maximum=100)
        codes = entry.get("on")
        found["retry_on"] = ("timeout", "unavailable") if codes is None else self._codes(codes)
        backoff = entry.get("backoff")
        if backoff is None:
            return
        inner = self._fields(backoff, "backoff", shapes.BACKOFF)
        if inner is None:
            return
        self._duration(inner.get("base"), "base", "backoff_us", found)
        self._duration(inner.get("max"), "max", "backoff_max_us", found)
        self._count(inner.get("factor"), "factor", "backoff_factor", found, maximum=100)
        jitter = inner.scalar("jitter")
        if jitter is not None and jitter.text not in ("none", "full"):
            self._bag.error(Code.BAD_LITERAL, jitter.span, text=jitter.text, expected="`none` or `full`")
        elif jitter is not None:
            found["jitter"] = jitter.text

    def _codes(self, tree: Tree) -> tuple[str, ...]:
        listed = expect_sequence(tree, "on", self._bag)
        scalars = [expect_scalar(item, "on", self._bag) for item in (listed.items if listed else ())]
        known = [scalar for scalar in scalars if scalar is not None]
        for scalar in known:
            if not is_code(scalar.text):
                self._bag.error(
                    Code.CODE_CANNOT_HAPPEN, scalar.span, failure=scalar.text, help=help_for_code(scalar.text)
                )
        return tuple(scalar.text for scalar in known)

    def _fields(self, tree: Tree, key: str, shape: Shape) -> Fields | None:
        mapping = expect_mapping(tree, key, self._bag)
        return None if mapping is None else Fields(mapping, shape, self._bag)

    def _entries(self, tree: Tree, key: str, shape: Shape) -> dict[str, Tree]:
        entry = self._fields(tree, key, shape)
        return {} if entry is None else {name: value for name in entry.names() if (value := entry.get(name))}

    def _count(self, tree: Tree | None, key: str, name: str, found: _Settings, maximum: int = 1_000_000_000) -> None:
        if tree is None:
            return
        value = read_literal(INTEGER, tree, key, self._bag)
        if isinstance(value, Unread):
            return
        assert isinstance(value, int)
        if not 1 <= value <= maximum:
            expected = f"a number from 1 to {maximum:,}"
            self._bag.error(Code.BAD_LITERAL, tree.span, text=str(value), expected=expected)
        else:
            found[name] = value

    def _decimal(self, tree: Tree | None, key: str, above: Decimal, most: Decimal | None) -> Decimal | None:
        value = Unread if tree is None else read_literal(DECIMAL, tree, key, self._bag)
        if tree is None or not isinstance(value, Decimal):
            return None
        if value <= above or (most is not None and value > most):
            expected = f"a number above {above}" + ("" if most is None else f", at most {most}")
            self._bag.error(Code.BAD_LITERAL, tree.span, text=f"{value:f}", expected=expected)
            return None
        return value

    def _duration(self, tree: Tree | None, key: str, name: str, found: _Settings) -> None:
        if tree is None:
            return
        value = read_literal(DURATION, tree, key, self._bag)
        if isinstance(value, Unread):
            return
        assert isinstance(value, timedelta)
        if value <= timedelta(0):
            self._bag.error(Code.BAD_LITERAL, tree.span, text=key, expected="a duration longer than nothing: `30s`")
        else:
            found[name] = value // _MICROSECOND
