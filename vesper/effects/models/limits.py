"""`limits` of `[models.NAME]`: the requests and tokens that a model accepts in a period (docs/spec/models.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from vesper.effects.settings import Table
from vesper.policies.settings import Policy

Strategy = Literal["queue", "reject", "backpressure"]
_STRATEGIES = ("queue", "reject", "backpressure")
_MAX_TOKENS = 1_000_000_000
_MAX_REQUESTS = 1_000_000
_MAX_PER_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Limits of one model, shared by all nodes that call it."""

    requests: int | None
    tokens: int | None
    """Of input and output together."""
    per: float
    """Seconds."""
    burst: int
    """Requests that may begin at once after a pause."""
    burst_tokens: int
    """Tokens that may be used at once after a pause; 0 without `tokens`."""
    strategy: Strategy
    timeout: float | None
    """Seconds of one request, for its lease."""

    @property
    def policy(self) -> Policy:
        """Return the limits in the form of a policy of the Host."""
        per_us = round(self.per * 1_000_000)
        found: dict[str, int | str | tuple[str, ...]] = {}
        if self.requests is not None:
            found |= {"rate_limit": self.requests, "rate_per_us": per_us, "rate_burst": self.burst}
        if self.tokens is not None:
            found |= {"token_limit": self.tokens, "token_per_us": per_us, "token_burst": self.burst_tokens}
        if self.timeout is not None:
            found["timeout_us"] = round(self.timeout * 1_000_000)
        return found


def read_limits(table: Table, timeout: float | None) -> ModelLimits | None:
    """Return the limits of a model's table; None without limits. Raises `ConfigError`."""
    if "limits" not in table:
        return None
    inner = table.table("limits")
    requests = inner.integer("requests", least=1, most=_MAX_REQUESTS) if "requests" in inner else None
    tokens = inner.integer("tokens", least=1, most=_MAX_TOKENS) if "tokens" in inner else None
    if requests is None and tokens is None:
        raise table.error("limits", "write `requests`, `tokens`, or both: the most of a period")
    if "burst" in inner and requests is None:
        raise inner.error("burst", "`burst` is a number of requests: write `requests`, or `burst_tokens` for tokens")
    if "burst_tokens" in inner and tokens is None:
        raise inner.error("burst_tokens", "`burst_tokens` needs `tokens`")
    per = inner.seconds("per", 60.0)
    if not 0.001 <= per <= _MAX_PER_SECONDS:
        raise inner.error("per", "a duration from 1ms to 1d is expected")
    found = ModelLimits(
        requests,
        tokens,
        per,
        inner.integer("burst", 1, least=1, most=requests or 1),
        inner.integer("burst_tokens", tokens or 0, least=1, most=tokens or 1),
        cast(Strategy, inner.choice("strategy", _STRATEGIES, "queue")),
        timeout,
    )
    inner.done()
    return found
