"""The caller of a run: identity, idempotency key, deadline and trace context (docs/spec/journal.md).

    with vesper.run_context(actor="alice", tenant="acme", key="order-17") as report:
        outcome = node.run_json(body)
    report.execution, report.is_repeat

A context holds for runs of a Host in its thread or task. Nodes without effects have no run: their calls ignore it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from math import isfinite
from time import monotonic
from typing import TYPE_CHECKING

from vesper.policies.budget import Budget
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper._direct import SharedBudgets

MAX_KEY_CHARACTERS = 255
_MAX_CHARACTERS = {"actor": 1024, "via": 255, "tenant": 255, "key": MAX_KEY_CHARACTERS, "tracestate": 512}
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_RECORDED = ("actor", "key", "tenant", "traceparent", "tracestate", "via")


class KeyReused(VesperError):
    """The key belongs to a run with other inputs."""

    def __init__(self, message: str, execution: str) -> None:
        super().__init__(message)
        self.execution = execution
        """The run that has the key."""


class KeyRunning(VesperError):
    """The run that has the key has not ended within the caller's time."""

    def __init__(self, message: str, execution: str) -> None:
        super().__init__(message)
        self.execution = execution
        """The run that has the key."""


@dataclass(slots=True)
class RunReport:
    """The last run under a context."""

    execution: str | None = None
    """The id in the journal; None before the end of a run, and for inputs that were refused."""
    is_repeat: bool = False
    """True where the outcome is that of an earlier run with the same key."""


@dataclass(frozen=True, slots=True)
class AmbientBudget:
    """A budget of the caller around its runs."""

    budget: Budget
    key: str
    """The name under which it is counted."""
    kept_us: int | None = None
    """Time for which the count is kept after its last change; None is for ever."""
    note_store: Callable[[SharedBudgets], None] | None = field(default=None, compare=False, repr=False)
    """Learns where the runs inside it are counted."""


@dataclass(frozen=True, slots=True)
class RunContext:
    actor: str | None = None
    """The authenticated subject."""
    via: str | None = None
    """The authority that authenticated it: an issuer, a set of keys."""
    tenant: str | None = None
    key: str | None = None
    """The idempotency key: each key has one run of a node for each tenant, or for each caller without a tenant."""
    deadline: float | None = None
    """The end of the caller's time, by `time.monotonic()`."""
    traceparent: str | None = None
    tracestate: str | None = None
    report: RunReport = field(default_factory=RunReport, compare=False, repr=False)
    budgets: tuple[AmbientBudget, ...] = ()
    """Budgets around the runs, outermost first (`vesper.host.budgets`)."""

    def __post_init__(self) -> None:
        for name, most in _MAX_CHARACTERS.items():
            text = getattr(self, name)
            if text is not None and not (isinstance(text, str) and 1 <= len(text) <= most and text.isprintable()):
                raise ValueError(f"`{name}` of a run context is a text of 1 to {most} printable characters")
        if self.deadline is not None and not isfinite(self.deadline):
            raise ValueError("`deadline` of a run context is a finite time of `time.monotonic()`")
        if self.traceparent is not None and _TRACEPARENT.fullmatch(self.traceparent) is None:
            raise ValueError("`traceparent` of a run context is a W3C trace context, VERSION-TRACE-PARENT-FLAGS")

    @classmethod
    def from_record(cls, record: Mapping[str, str]) -> RunContext:
        """Return the context of a run that is taken over. Its caller and the deadline no longer exist."""
        get = record.get
        return cls(
            *(get("actor"), get("via"), get("tenant"), get("key"), None, get("traceparent"), get("tracestate")),
            budgets=_budgets_from(get("budgets")),
        )

    def to_record(self) -> dict[str, str]:
        """Return the context in the form of START."""
        found = {name: getattr(self, name) for name in _RECORDED}
        if self.budgets:
            forms = [{"key": each.key, "kept_us": each.kept_us, **each.budget.to_json()} for each in self.budgets]
            found["budgets"] = json.dumps(forms)
        return {name: text for name, text in found.items() if text is not None}

    def seconds_left(self) -> float | None:
        """Return the seconds until the caller's deadline, at least 0; None without a deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - monotonic())

    def of_nested_run(self) -> RunContext:
        """Return the context of runs that an effect of this run begins, without its key and its report."""
        return replace(self, key=None, report=RunReport())


def _budgets_from(text: str | None) -> tuple[AmbientBudget, ...]:
    forms = [] if text is None else json.loads(text)
    return tuple(
        AmbientBudget(key=form.pop("key"), kept_us=form.pop("kept_us"), budget=Budget.from_json(form)) for form in forms
    )


_CURRENT: ContextVar[RunContext | None] = ContextVar("vesper_run_context", default=None)


def current_context() -> RunContext | None:
    """Return the context of this thread or task."""
    return _CURRENT.get()


def enter_context(context: RunContext) -> Token[RunContext | None]:
    """Make `context` the current one, until `leave_context` gets the token."""
    return _CURRENT.set(context)


def leave_context(token: Token[RunContext | None]) -> None:
    """Make the context before `enter_context` the current one."""
    _CURRENT.reset(token)


@contextmanager
def entered(context: RunContext) -> Generator[RunReport, None, None]:
    """Make `context` the current one inside the `with` block."""
    token = enter_context(context)
    try:
        yield context.report
    finally:
        leave_context(token)


def run_context(
    *,
    actor: str | None = None,
    via: str | None = None,
    tenant: str | None = None,
    key: str | None = None,
    deadline: float | None = None,
    traceparent: str | None = None,
    tracestate: str | None = None,
) -> AbstractContextManager[RunReport]:
    """Set the caller of runs inside the `with` block.

    It replaces an outer context, except for the budgets around it. Raises `ValueError` for an invalid part.
    """
    outer = current_context()
    budgets = () if outer is None else outer.budgets
    return entered(RunContext(actor, via, tenant, key, deadline, traceparent, tracestate, budgets=budgets))
