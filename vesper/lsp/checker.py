"""Checks pending files one after the other in a thread, so that the event loop stays free for questions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from vesper.lsp.collection import Collection

DEBOUNCE_SECONDS = 0.03
"""Wait after a change of a text, within which a newer text replaces it."""


class Checker:
    """Checks files of a collection when they change. INVARIANT: all methods run in the event loop."""

    def __init__(
        self,
        collection: Collection,
        publish: Callable[[set[Path]], None],
        report: Callable[[Path, Exception], None],
    ) -> None:
        """`publish` receives files whose diagnostics may have changed, `report` a file on which the front end fails."""
        self._collection = collection
        self._publish = publish
        self._report = report
        self._wake = asyncio.Event()
        self._due: dict[Path, float] = {}
        self._pool = ThreadPoolExecutor(1, "vesper-check")
        self._task: asyncio.Task[None] | None = None
        self.is_idle = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def changed(self, path: Path | None = None) -> None:
        """Check pending files; one that is being typed after a short wait."""
        if path is not None:
            self._due[path] = asyncio.get_running_loop().time() + DEBOUNCE_SECONDS
        self.is_idle.clear()
        self._wake.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            now = loop.time()
            self._due = {path: due for path, due in self._due.items() if due > now}
            path = self._collection.next_pending(self._due)
            if path is not None:
                try:
                    await loop.run_in_executor(self._pool, self._collection.check, path)
                except Exception as error:  # noqa: BLE001  # a defect met in one text must not end all diagnostics
                    self._collection.pending.pop(path, None)
                    self._report(path, error)
                self._publish(self._collection.settle(path))
            elif self._due:
                await asyncio.sleep(min(self._due.values()) - now)
            else:
                self._publish(self._collection.update_problems())
                await loop.run_in_executor(self._pool, self._collection.save_caches)
                if not self._collection.pending:
                    self.is_idle.set()
                    await self._wake.wait()
