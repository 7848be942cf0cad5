"""An event loop of our own, in a thread: coroutines of the application run in it, whatever thread asks."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

from vesper.effects.worker_threads import StillRunning
from vesper.storage.per_process import PerProcess


class PrivateLoop:
    """Starts with its first call. A forked process starts its own."""

    def __init__(self) -> None:
        self._loop = PerProcess(_started)

    def run(self, make: Callable[[], Any], timeout: float | None) -> object:
        """What the coroutine gives or raises. When the time is up it is cancelled, and `StillRunning` is raised: it
        may have done its work, or a part of it."""
        context = contextvars.copy_context()
        loop = self._loop.get()
        if _running_loop() is loop:
            raise RuntimeError("an `async def` effect waits for another one in its own loop: use asyncio.to_thread")
        future = asyncio.run_coroutine_threadsafe(_within(context, make), loop)
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


async def _within(context: contextvars.Context, make: Callable[[], Coroutine[Any, Any, object]]) -> object:
    """Runs the coroutine as a task that sees the caller's context variables."""
    return await asyncio.get_running_loop().create_task(context.run(make), context=context)


def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=_forever, args=(loop,), name="vesper-effect-loop", daemon=True).start()
    return loop


def _forever(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


LOOP: Final = PrivateLoop()
"""One for the process: coroutines of all effects take turns in it, so none of them may block."""
