"""The events of one run as an iterator, for coroutines and for threads.

    async for event in node.stream(question="…"):
        print(event.text, end="")

    with node.stream(question="…") as answer:
        for event in answer: ...
        outcome = answer.outcome()

An event arrives before it is durable; the outcome is that of the run, as a call returns it. Closing the iterator, or
dropping it, ends the run: the request that is under way is dropped where it only reads, and nothing further is
performed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from vesper.host.streaming.events import RunEvent

if TYPE_CHECKING:
    from vesper._direct import Running
    from vesper.host.host import Host
    from vesper.host.prepared import Ran

ResultT = TypeVar("ResultT")


class _Feed:
    """The queue of events between a run and its reader.

    The run holds the feed and not the iterator, so a dropped iterator ends the run.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._changed = threading.Condition()
        self._events: deque[RunEvent] = deque()
        self._running: Running | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._is_stopped = False
        self.has_ended = False
        self.wake: Callable[[], None] | None = None
        """Wakes the loop of a coroutine that reads."""

    def note_begun(self, running: Running) -> None:
        with self._changed:
            self._running = running
            self._unsubscribe = self._host.subscribe(runs=self._put, execution=running.execution)
            is_stopped = self._is_stopped
        if is_stopped:
            running.stop()

    def _put(self, event: RunEvent) -> None:
        with self._changed:
            is_first = not self._events
            self._events.append(event)
            self._changed.notify()
        if is_first and self.wake is not None:
            self.wake()

    def end(self) -> None:
        """Note that the run has ended."""
        with self._changed:
            unsubscribe, self._unsubscribe = self._unsubscribe, None
            self.has_ended = True
            self._changed.notify()
        if unsubscribe is not None:
            unsubscribe()

    def stop(self) -> None:
        """End the run, now or as soon as it begins."""
        with self._changed:
            self._is_stopped = True
            running = None if self.has_ended else self._running
        if running is not None:
            running.stop()

    def take(self) -> RunEvent | None:
        with self._changed:
            return self._events.popleft() if self._events else None

    @property
    def is_readable(self) -> bool:
        """True where a reader need not wait."""
        return self.has_ended or bool(self._events)

    def wait(self, seconds: float | None = None) -> RunEvent | None:
        """Return the next event; None after the last one. Raises `TimeoutError`."""
        until = None if seconds is None else time.monotonic() + seconds
        with self._changed:
            while not self._events and not self.has_ended:
                # Woken now and then, so that Ctrl-C reaches a thread that waits.
                left = 0.2 if until is None else min(0.2, until - time.monotonic())
                if left <= 0:
                    raise TimeoutError("no event arrived in time")
                self._changed.wait(left)
            return self._events.popleft() if self._events else None


class AnswerStream(Generic[ResultT]):
    """The events of one run. Read it once, from one coroutine or from one thread."""

    def __init__(
        self,
        host: Host,
        run: Callable[[Callable[[Running], None]], Ran],
        arun: Callable[[Callable[[Running], None]], Any],
        named: Callable[[Ran], ResultT],
    ) -> None:
        """Prepare a stream. `run` and `arun` call their argument when the run has begun; `named` makes the outcome."""
        self._feed = _Feed(host)
        self._run = run
        self._arun = arun
        self._named = named
        self._found: ResultT | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    @classmethod
    def refused(cls, host: Host, outcome: ResultT) -> Self:
        """Return the stream of a call whose inputs are refused: no events, and this outcome."""
        found = cls(host, _refuse_to_run, _refuse_to_run, _refuse_to_run)
        found._found, found._feed.has_ended = outcome, True
        return found

    @property
    def is_refused(self) -> bool:
        """True where there is an outcome without a run."""
        return self._found is not None and self.execution is None

    @property
    def execution(self) -> str | None:
        """The id of the run in the journal; None before it has begun."""
        running = self._feed._running
        return None if running is None else running.execution

    # -- threads ----------------------------------------------------------------------------------

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> RunEvent:
        self._begin_thread()
        event = self._feed.wait()
        if event is None:
            self._raise_error()
            raise StopIteration
        return event

    def outcome(self) -> ResultT:
        """Return the outcome of the run; reads and drops the events that are left. For threads."""
        for _ in self:
            pass
        return self._result()

    def close(self) -> None:
        """End the run, and wait until it has ended."""
        self._feed.stop()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        self._begin_thread()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin_thread(self) -> None:
        if self._thread is not None or self._feed.has_ended:
            return
        import contextvars

        feed, run, box = self._feed, self._run, self._result_receiver()

        def work() -> None:
            try:
                box(run(feed.note_begun), None)
            except BaseException as error:  # noqa: BLE001  # the reader gets it
                box(None, error)
            finally:
                feed.end()

        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(work,), name="vesper-stream", daemon=True)
        self._thread.start()

    # -- coroutines -------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunEvent:
        self._begin_task()
        while True:
            event = self._feed.take()
            if event is not None:
                return event
            if self._feed.has_ended:
                self._raise_error()
                raise StopAsyncIteration
            self._ready.clear()
            if self._feed.is_readable:  # between the look and the clear
                continue
            try:
                await self._ready.wait()
            except asyncio.CancelledError:
                self._feed.stop()
                raise

    async def result(self) -> ResultT:
        """Return the outcome of the run; reads and drops the events that are left. For coroutines."""
        async for _ in self:
            pass
        return self._result()

    async def aclose(self) -> None:
        """End the run, and wait until it has ended."""
        self._feed.stop()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def __aenter__(self) -> Self:
        self._begin_task()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _begin_task(self) -> None:
        if self._task is not None or self._feed.has_ended:
            return
        loop, ready = asyncio.get_running_loop(), self._ready

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(ready.set)
            except RuntimeError:  # the loop was closed: its reader has gone
                feed.stop()

        feed, arun, box = self._feed, self._arun, self._result_receiver()
        feed.wake = wake

        async def work() -> None:
            try:
                box(await arun(feed.note_begun), None)
            except asyncio.CancelledError as error:  # the loop ends
                feed.stop()
                box(None, error)
                raise
            except BaseException as error:  # noqa: BLE001  # the reader gets it
                box(None, error)
            finally:
                feed.end()
                ready.set()

        self._task = asyncio.ensure_future(work())
        _TASKS.add(self._task)
        self._task.add_done_callback(_TASKS.discard)

    # -- both -------------------------------------------------------------------------------------

    def _result_receiver(self) -> Callable[[Ran | None, BaseException | None], None]:
        """Return the receiver of the result. It does not hold the stream, which may be dropped before the end."""
        from weakref import ref

        stream, named = ref(self), self._named

        def put(ran: Ran | None, error: BaseException | None) -> None:
            found = stream()
            if found is not None:
                found._error = error
                found._found = None if ran is None else named(ran)

        return put

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _result(self) -> ResultT:
        self._raise_error()
        assert self._found is not None, "a run that has ended has an outcome or an error"
        return self._found

    def __del__(self) -> None:
        self._feed.stop()


_TASKS: set[asyncio.Task[None]] = set()
"""Runs of streams: a loop holds its tasks weakly."""


def _refuse_to_run(_: object) -> Any:
    raise AssertionError("a refused call does not run")
