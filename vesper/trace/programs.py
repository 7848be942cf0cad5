"""Cache of nodes and programs of traces, because many traces share one node.

A program is keyed by the semantic hash of its node, a compiled node also by its text. The cache holds a few dozen
entries.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from vesper.compiler import Compiled
from vesper.engines.engine import EngineUnavailable, Program
from vesper.engines.registry import ENGINES
from vesper.host.prepared import compiled_from
from vesper.journal.entry import Definition
from vesper.storage.per_process import PerProcess
from vesper.trace.model import TraceError

_MAX_ENTRIES = 64
_STRICT = "interp"
_Entry = TypeVar("_Entry")


class LeastRecentlyUsed(Generic[_Entry]):
    """Least recently used cache."""

    def __init__(self, max_entries: int = _MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._found: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = PerProcess(threading.Lock)  # a lock held during a fork would stay locked in the child

    def get(self, key: Hashable, make: Callable[[], _Entry]) -> _Entry:
        with self._lock.get():
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        built = make()  # outside the lock, because it may be slow; building twice is harmless
        with self._lock.get():
            self._found[key] = built
            while len(self._found) > self._max_entries:
                self._found.popitem(last=False)
        return built


_programs: LeastRecentlyUsed[Program] = LeastRecentlyUsed()
_compiled: LeastRecentlyUsed[Compiled] = LeastRecentlyUsed()


def program_of(compiled: Compiled, engine: str) -> Program:
    """Return the node loaded on an engine. Raises `EngineUnavailable`."""
    if engine not in ENGINES:
        raise EngineUnavailable(f"there is no engine `{engine}`; the engines are {', '.join(ENGINES)}")
    return _programs.get((engine, compiled.semantic_hash), lambda: ENGINES[engine].load(compiled))


def compiled_of(definition: Definition) -> Compiled:
    """Return the node of a definition. Raises `TraceError` if it is invalid or differs from its hash."""
    return _compiled.get(definition, lambda: _decode(definition))


def _decode(definition: Definition) -> Compiled:
    """Decode and check a definition from an untrusted trace.

    The direct engine rejects malformed IR and recomputes the hash, so the Python generator only sees IR that the front
    end could have produced.
    """
    try:
        compiled = compiled_from(definition)
        found = ENGINES[_STRICT].load(compiled).semantic_hash
    # raised for bytes that are no IR
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        told = str(error)[:300] or type(error).__name__
        raise TraceError(f"the node that the trace carries cannot be read: {told}") from None
    if found != definition.semantic_hash:
        raise TraceError(
            f"the trace names the semantic hash {definition.semantic_hash[:12]}, but its definition has "
            f"{found[:12]}: the trace was changed"
        )
    if compiled.node.node_id != definition.node_id:
        raise TraceError(
            f"the trace names the node {definition.node_id}, but carries {compiled.node.node_id}: the trace was changed"
        )
    if compiled.source.sha256 != compiled.node.source.sha256:
        raise TraceError(
            f"the text of {definition.node_id} in the trace is not the text that ran: the trace was changed"
        )
    for callee in definition.callees:
        compiled_of(callee)
    return compiled
