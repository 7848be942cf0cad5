"""The run of a node for a request, whichever server has read it."""

from __future__ import annotations

import logging
import time
import traceback
from typing import TYPE_CHECKING, Protocol, TypeVar

from vesper.host.host import HostClosed
from vesper.host.in_doubt import InDoubt
from vesper.host.run_context import KeyReused, KeyRunning, run_context
from vesper.journal.journal import JournalError
from vesper.observe.context import ANNOUNCED_TRACE
from vesper.serve.nodes import is_sensitive

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.host.host import Host

_log = logging.getLogger("vesper.serve")
_AnswerT = TypeVar("_AnswerT", covariant=True)  # noqa: PLC0105  # the house names type variables so


class Call(Protocol[_AnswerT]):
    """A request that wants an outcome: `HttpCall` sends its answer, `ExchangeCall` returns it."""

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


class HasHost(Protocol):
    """A service, or a node: its Host redacts secrets in messages."""

    @property
    def host(self) -> Host: ...


def run_call(call: Call[_AnswerT], node: Node, inputs: bytes, seconds_left: float | None, service: HasHost) -> _AnswerT:
    """Run a node for its caller and answer the request."""
    if seconds_left is not None and seconds_left <= 0:
        return call.refuse("deadline", None, None, None)
    context = run_context(
        actor=call.actor,
        via=call.via,
        tenant=call.tenant,
        key=call.key,
        deadline=None if seconds_left is None else time.monotonic() + seconds_left,
        traceparent=call.traceparent,
        tracestate=call.tracestate,
    )
    ANNOUNCED_TRACE.set(call.trace_id)
    try:
        with context as report:
            outcome = node.run_json(inputs)
        return call.answer(outcome, report.execution)
    except KeyReused as problem:
        return call.refuse("key_reused", None, None, problem.execution)
    except KeyRunning as problem:
        return call.refuse("key_running", None, 1.0, problem.execution)
    except InDoubt as problem:
        return call.refuse("in_doubt", None, None, problem.execution)
    except HostClosed:
        return call.refuse("closing", None, 1.0, None)
    except JournalError as problem:
        _log.error("%s: %s", node.id, service.host.redact(str(problem)))
        return call.refuse("journal", None, 1.0, None)


def describe_error(error: Exception, service: HasHost, node: Node | None) -> str:
    """Return a traceback without secrets, and without the message where it may repeat a sensitive value."""
    lines = traceback.format_exception(error)
    if node is not None and is_sensitive(node):
        lines = [*traceback.format_tb(error.__traceback__), type(error).__name__]
    return service.host.redact("".join(lines))
