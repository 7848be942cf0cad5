"""A budget in the form of the IR. It limits money, tokens, requests and time of the requests in its scope."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, cast

Scope: TypeAlias = Literal["call", "run", "agent", "session", "tenant", "named"]
OnExceeded: TypeAlias = Literal["block", "warn", "allow"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on the requests of one scope. A limit that is None does not hold."""

    scope: Scope
    name: str
    """The node of scope `agent`, the step of scopes `call` and `run`, else the name of the setting."""
    usd: str | None = None
    """An exact decimal."""
    tokens: int | None = None
    """Of input and output."""
    calls: int | None = None
    time_us: int | None = None
    on_exceeded: OnExceeded = "block"
    alert_percent: int | None = None
    depth: int = 0
    """Number of calls around the node that declares it: the account is that of the first `depth` parts of a request's
    path, so each execution of the node has its own. Set in plans; the IR of a node does not have it."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form in the IR, without absent members."""
        members = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "depth"}
        return {key: value for key, value in members.items() if value is not None and value != "block"}

    @classmethod
    def from_json(cls, form: dict[str, Any]) -> Budget:
        """Return the budget of a JSON form in the IR."""
        return cls(**form)

    def at_depth(self, depth: int) -> Budget:
        """Return the budget as part of a node that is called `depth` calls deeper."""
        return replace(self, depth=self.depth + depth)


def budgets_of(policy: Any) -> tuple[Budget, ...]:
    """Return the budgets of a policy, outermost first."""
    return cast("tuple[Budget, ...]", policy.get("budgets", ()))
