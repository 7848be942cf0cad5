"""A node that passed every check, compiled just now or restored from the cache.

A restored node is complete, but is decoded on demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vesper.cache.node_facts import NOTHING, Nothing

if TYPE_CHECKING:
    from vesper.language.agent_binding import AgentBinding
    from vesper.language.check.cases import Case
    from vesper.language.check.properties import Property
    from vesper.language.diagnostics.source import SourceFile
    from vesper.language.http_binding import HttpBinding
    from vesper.language.ir.nodes import Node
    from vesper.language.work_bindings import WorkBindings
    from vesper.values.types import Type


@dataclass(slots=True, eq=False)
class Compiled:
    """A node that passed every check. Not frozen: `Restored` fills its slots at their first read."""

    source: SourceFile
    node: Node
    cases: tuple[Case, ...]
    ir: bytes
    semantic_hash: str
    callees: tuple[Compiled, ...] = ()
    """The nodes that it calls, each with its own callees."""
    kept: Nothing = NOTHING
    """Cached facts about it."""
    files: tuple[tuple[str, str], ...] = ()
    """Other files that it was made of, such as libraries: path and SHA-256 of each."""
    properties: tuple[Property, ...] = ()
    """Claims of `testing.properties`. A node from the cache has none: only tests check them."""
    http: HttpBinding | None = None
    """The request that an `http_handler` answers."""
    work: WorkBindings | None = None
    """Its fields `schedule`, `queue` and `events`; None where it has none of them."""
    agent: AgentBinding | None = None
    """Model and tools of a node of type `agent`."""
    declared: tuple[tuple[Type, ...], ...] | None = None
    """Types of inputs, outputs and errors where recursive ones are among them, which the IR has as json."""

    @property
    def path(self) -> str:
        """The file, as messages name it."""
        return self.source.path


class Restored(Compiled):
    """A node from the cache.

    Text, IR and cases are decoded at their first use: a call that succeeds needs none of them, and they are most of the
    load time.
    """

    __slots__ = ("_form",)

    def __init__(self, form: dict[str, Any], callees: tuple[Compiled, ...], kept: Nothing) -> None:
        self._form = form
        self.ir = form["ir"]
        self.semantic_hash = form["hash"]
        self.callees = callees
        self.kept = kept
        self.properties = ()
        self.files = tuple((path, sha256) for path, sha256 in form["files"])

    @property
    def path(self) -> str:
        path: str = self._form["path"]
        return path

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # the slot is still empty
            if name == "source":
                from vesper.language.diagnostics.source import SourceFile

                found = SourceFile(self._form["path"], self._form["text"])
            elif name == "http":
                found = self._form["http"]
                if found is not None:
                    from vesper.language.http_binding import HttpBinding

                    found = HttpBinding.from_data(found)
            elif name == "work":
                found = self._form["work"]
                if found is not None:
                    from vesper.language.work_bindings import WorkBindings

                    found = WorkBindings.from_data(found)
            elif name == "agent":
                found = self._form["agent"]
                if found is not None:
                    from vesper.language.agent_binding import AgentBinding

                    found = AgentBinding.from_data(found)
            elif name in ("node", "cases", "declared"):
                from vesper.compiler.node_bytes import decode_part

                found = decode_part(self._form[name])
            else:
                raise AttributeError(name)
            setattr(self, name, found)  # two threads may both decode it; either result is valid
            return found
