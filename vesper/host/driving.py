"""The steps of a run around its run loop, for a thread or a coroutine."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast

from vesper.engines.engine import Execution, Request
from vesper.engines.outcome import Outcome
from vesper.host.prepared import Ran

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

    from vesper._direct import Running

_log = logging.getLogger("vesper.host")
_Result = TypeVar("_Result")
Steps: TypeAlias = "Generator[tuple[Running, Execution, int], Outcome, _Result]"
"""A run that yields once, with what is to be driven and the size of its inputs, and receives the outcome."""


class Replayed(Protocol):
    """Known answers for requests of a run."""

    def answer(self, request: Request) -> tuple[object, str | None, str, str] | None:
        """Return value, failure code, message and trace id. None for a request that must be performed."""
        ...

    def rename(self, request: Request) -> str | None:
        """Return the key that replaces a request's own key; None to keep it."""
        ...


KNOWN_ANSWERS: ContextVar[Replayed | None] = ContextVar("known_answers", default=None)
"""Answers of the runs that begin in this context: the debugger completes waits with them."""


def drive(steps: Steps[_Result]) -> _Result:
    """Drive the steps to their end on this thread."""
    try:
        running, started, size = next(steps)
        try:
            outcome = running.go(started, size)
        except BaseException as error:  # noqa: BLE001  # the steps decide what it is
            send(steps, None, error)
        else:
            send(steps, outcome, None)
    except StopIteration as end:
        return cast("_Result", end.value)
    raise AssertionError("a run is driven once")


def send(steps: Steps[_Result], outcome: Outcome | None, error: BaseException | None) -> None:
    """Continue the steps with the result or error of a run.

    Raises `StopIteration` with the result, or the exception of the steps.
    """
    if error is not None:
        steps.throw(error)
    else:
        assert outcome is not None
        steps.send(outcome)


def deliver(loop: AbstractEventLoop, answer: Future[Ran], found: Ran | BaseException | None) -> None:
    """Complete the future of a coroutine, from another thread. An error whose caller has gone is logged."""

    def complete() -> None:
        if answer.cancelled():
            if isinstance(found, BaseException):
                _log.error("a run whose caller has gone failed: %s", found)
        elif isinstance(found, BaseException):
            answer.set_exception(found)
        elif found is not None:
            answer.set_result(found)

    try:
        loop.call_soon_threadsafe(complete)
    except RuntimeError:  # the loop was closed: the caller has gone
        if isinstance(found, BaseException):
            _log.error("a run whose caller has gone failed: %s", found)
