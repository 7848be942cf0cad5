"""A private event loop in its own thread. Coroutines of the application run in it, for callers of any thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

from vesper.effects.worker_threads import StillRunning
from vesper.storage.per_process import PerProcess


class PrivateLoop:
    """An event loop that starts with its first call. A forked process starts its own."""

    def __init__(self) -> None:
        self._loop = PerProcess(_start_loop)

    def run(self, make: Callable[[], Any], timeout: float | None) -> object:
        """Return or raise the outcome of a coroutine.

        It is cancelled after `timeout` seconds, and `StillRunning` is raised: its work may have been done in whole or
        in part.
        """
        context = contextvars.copy_context()
        loop = self._loop.get()
        if _running_loop() is loop:
            raise RuntimeError("an `async def` effect waits for another one in its own loop: use asyncio.to_thread")
        future = asyncio.run_coroutine_threadsafe(_run_in_context(context, make), loop)
        try:
            return future.result(timeout)
        except KeyboardInterrupt:
            future.cancel()
            raise
        except TimeoutError:
            if not future.cancel():  # it is over: it came just in time, or raised this itself
                return future.result()
            raise StillRunning from None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _run_in_context(context: contextvars.Context, make: Callable[[], Coroutine[Any, Any, object]]) -> object:
    """Run the coroutine as a task that sees the caller's context variables."""
    return await asyncio.get_running_loop().create_task(context.run(make), context=context)


def _start_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=_run_forever, args=(loop,), name="vesper-effect-loop", daemon=True).start()
    return loop


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


LOOP: Final = PrivateLoop()
"""One for the process: coroutines of all effects take turns in it, so none of them may block."""
