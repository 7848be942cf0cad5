"""Nodes of traces, loaded once: a list of a thousand traces is mostly of one node, and loading one takes long.

Kept by what decides them: a program by the semantic hash of its node, a compiled node by that and its text. A few dozen
are remembered.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from vesper.compiler import Compiled
from vesper.engines.engine import EngineUnavailable, Program
from vesper.engines.registry import ENGINES
from vesper.host.host import compiled_from
from vesper.journal.entry import Definition
from vesper.storage.per_process import PerProcess
from vesper.trace.model import TraceError

_MOST = 64
_STRICT = "interp"
_Kept = TypeVar("_Kept")


class Kept(Generic[_Kept]):
    """The newest of what was made, by key."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._found: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._lock = PerProcess(threading.Lock)  # one that is held when somebody forks is held there for ever

    def get(self, key: Hashable, make: Callable[[], _Kept]) -> _Kept:
        with self._lock.get():
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        made = make()  # without the lock: it may take long, and two that make the same do no harm
        with self._lock.get():
            self._found[key] = made
            while len(self._found) > self._most:
                self._found.popitem(last=False)
        return made


_programs: Kept[Program] = Kept()
_compiled: Kept[Compiled] = Kept()


def program_of(compiled: Compiled, engine: str) -> Program:
    """The node on an engine. Raises `EngineUnavailable`."""
    if engine not in ENGINES:
        raise EngineUnavailable(f"there is no engine `{engine}` here; the engines are {', '.join(ENGINES)}")
    return _programs.get((engine, compiled.semantic_hash), lambda: ENGINES[engine].load(compiled))


def compiled_of(definition: Definition) -> Compiled:
    """The node that a trace carries. Raises `TraceError` where it is none, or another than its hash says."""
    return _compiled.get(definition, lambda: _checked(definition))


def _checked(definition: Definition) -> Compiled:
    """A trace may come from anywhere. The direct engine refuses IR that is not well formed, and computes the hash
    anew; so nothing gets to the generator of Python that our own front end could not have written."""
    try:
        compiled = compiled_from(definition)
        found = ENGINES[_STRICT].load(compiled).semantic_hash
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:  # of bytes that are no IR
        told = str(error)[:300] or type(error).__name__
        raise TraceError(f"the node that the trace carries cannot be read: {told}") from None
    if found != definition.semantic_hash:
        raise TraceError(
            f"the trace says that its node is {definition.semantic_hash[:12]}, and the one that it carries is "
            f"{found[:12]}: somebody changed it"
        )
    if compiled.node.node_id != definition.node_id:
        raise TraceError(
            f"the trace says that it is of {definition.node_id}, and carries {compiled.node.node_id}: somebody "
            "changed it"
        )
    if compiled.source.sha256 != compiled.node.source.sha256:
        raise TraceError(
            f"the text of {definition.node_id} that the trace carries is not the one that ran: it was changed"
        )
    for callee in definition.callees:
        compiled_of(callee)
    return compiled
