"""A connection to PostgreSQL that does not wait for ever, and that gives every column as the bytes that came.

It is imported only where a PostgreSQL database is used.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Any, TypeVar

import psycopg
from psycopg import adapt, postgres
from psycopg.abc import AdaptContext, Buffer
from psycopg.pq import Format

from vesper.effects.database.pool import Deadline

_Result = TypeVar("_Result")


class DeadlinePassed(psycopg.OperationalError):
    """The server said nothing for longer than the attempt may take; the connection has been cut."""


class OurConnection(psycopg.Connection[Any]):
    """The server is told by `statement_timeout` when to stop. One that hears nothing (a network that swallows packets,
    a machine that stands still) stops nothing: then this side does, at `cut_at`."""

    cut_at: Deadline | None = None
    reported: tuple[str | None, ...] = ()
    """What the server said of the session when it began."""
    limit = 0
    """The `statement_timeout` that the session has for queries, in milliseconds."""

    def wait(self, gen: Generator[Any, Any, _Result], *args: Any, **options: Any) -> _Result:
        try:
            return super().wait(self._watched(gen), *args, **options)
        except DeadlinePassed:
            self.close()
            raise

    def _watched(self, gen: Generator[Any, Any, _Result]) -> Generator[Any, Any, _Result]:
        """The same steps; psycopg comes by with nothing every tenth of a second while it waits."""
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and self.cut_at is not None and self.cut_at.has_passed():
                    raise DeadlinePassed("no answer in time")
                wanted = gen.send(ready)
        except StopIteration as stop:
            result: _Result = stop.value
            return result


class _RawLoader(adapt.Loader):
    """Gives what came."""

    format = Format.TEXT

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


def take_raw_values(adapters: adapt.AdaptersMap) -> None:
    """Makes a cursor of somebody else's connection give what came, for every type that psycopg knows."""
    adapters.register_loader(0, _RawLoader)
    for info in postgres.types:
        adapters.register_loader(info.oid, _RawLoader)
        if info.array_oid:
            adapters.register_loader(info.array_oid, _RawLoader)


@cache
def _context() -> adapt.AdaptersMap:
    adapters = adapt.AdaptersMap(psycopg.adapters)
    take_raw_values(adapters)
    return adapters


class _Context:
    """What a new connection takes its adapters from."""

    connection = None

    @property
    def adapters(self) -> adapt.AdaptersMap:
        return _context()


def raw_values() -> AdaptContext:
    return _Context()
