"""Execution of a node for a request, independent of the server that has read the request."""

from __future__ import annotations

import json
import logging
import time
import traceback
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from vesper.host.host import HostClosed
from vesper.host.in_doubt import InDoubt
from vesper.host.limits import ModelBusy
from vesper.host.run_context import KeyReused, KeyRunning, RunReport, run_context
from vesper.host.waiting import RunWaits
from vesper.journal.journal import JournalError
from vesper.journal.moments import moment_json
from vesper.observe.context import ANNOUNCED_TRACE
from vesper.serve.nodes import is_sensitive
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.host.host import Host

_log = logging.getLogger("vesper.serve")
JSON_HEADERS = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
_AnswerT = TypeVar("_AnswerT", covariant=True)  # noqa: PLC0105  # the house names type variables so


class Call(Protocol[_AnswerT]):
    """A request to run a node: `HttpCall` sends its answer, `ExchangeCall` returns it."""

    @property
    def actor(self) -> str | None: ...
    @property
    def via(self) -> str | None: ...
    @property
    def tenant(self) -> str | None: ...
    @property
    def key(self) -> str | None: ...
    @property
    def traceparent(self) -> str | None: ...
    @property
    def trace_id(self) -> str: ...
    @property
    def tracestate(self) -> str | None: ...
    def answer(self, outcome: bytes, execution: str | None, /) -> _AnswerT: ...
    def refuse(
        self, refusal: str, detail: str | None, retry_after: float | None, execution: str | None, /
    ) -> _AnswerT: ...
    def send(self, status: int, headers: list[tuple[str, str]], body: bytes, /) -> _AnswerT: ...


class HasHost(Protocol):
    """A service or a node, whose Host redacts secrets in messages."""

    @property
    def host(self) -> Host: ...


def run_call(
    call: Call[_AnswerT],
    node: Node,
    inputs: bytes,
    seconds_left: float | None,
    service: HasHost,
    has_runs: bool = False,
) -> _AnswerT:
    """Run a node for its caller and answer the request. With `has_runs`, `/runs` shows a waiting run."""
    if seconds_left is not None and seconds_left <= 0:
        return call.refuse("deadline", None, None, None)
    try:
        with context_of(call, seconds_left) as report:
            outcome = node.run_json(inputs)
        return call.answer(outcome, report.execution)
    except RunWaits as waits:
        return call.send(*_accepted_answer(waits, has_runs))
    except VesperError as problem:
        refusal = refusal_of(problem, node, service)
        if refusal is None:
            raise
        return call.refuse(refusal[0], None, refusal[1], refusal[2])


def context_of(call: Call[object], seconds_left: float | None) -> AbstractContextManager[RunReport]:
    """Return the context of runs for a request."""
    ANNOUNCED_TRACE.set(call.trace_id)
    return run_context(
        actor=call.actor,
        via=call.via,
        tenant=call.tenant,
        key=call.key,
        deadline=None if seconds_left is None else time.monotonic() + seconds_left,
        traceparent=call.traceparent,
        tracestate=call.tracestate,
    )


def refusal_of(error: Exception, node: Node, service: HasHost) -> tuple[str, float | None, str | None] | None:
    """Return the name of a refusal, the seconds until another attempt, and the run. None for an error that is a bug."""
    match error:
        case KeyReused():
            return "key_reused", None, error.execution
        case KeyRunning():
            return "key_running", 1.0, error.execution
        case InDoubt():
            return "in_doubt", None, error.execution
        case ModelBusy():
            return "model_busy", error.retry_after, None
        case HostClosed():
            return "closing", 1.0, None
        case JournalError():
            _log.error("%s: %s", node.id, service.host.redact(str(error)))
            return "journal", 1.0, None
        case _:
            return None


def _accepted_answer(waits: RunWaits, has_runs: bool) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return the answer to a request whose run has begun to wait."""
    until = None if waits.due_us is None else moment_json(waits.due_us)
    what = {"kind": waits.kind, "name": waits.name, "step": waits.path, "until": until}
    body = json.dumps({"execution": waits.execution, "waits_for": what}).encode()
    location = [("Location", f"/runs/{waits.execution}")] if has_runs else []
    return 202, [*JSON_HEADERS, *location, ("Vesper-Execution", waits.execution)], body


def describe_error(error: Exception, service: HasHost, node: Node | None) -> str:
    """Return a traceback without secrets. The message is left out if it may repeat a sensitive value."""
    lines = traceback.format_exception(error)
    if node is not None and is_sensitive(node):
        lines = [*traceback.format_tb(error.__traceback__), type(error).__name__]
    return service.host.redact("".join(lines))
