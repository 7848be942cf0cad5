"""A node that passed every check, and the same as the cache gives it back: whole, but read only as far as needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vesper.cache.node_facts import NOTHING, Nothing

if TYPE_CHECKING:
    from vesper.language.check.cases import Case
    from vesper.language.diagnostics.source import SourceFile
    from vesper.language.ir.nodes import Node


@dataclass(slots=True, eq=False)
class Compiled:
    """A node that passed every check. Not frozen: `Restored` fills its slots when they are first read."""

    source: SourceFile
    node: Node
    cases: tuple[Case, ...]
    ir: bytes
    semantic_hash: str
    callees: tuple[Compiled, ...] = ()
    """The nodes that it calls, and with each of them those that it calls."""
    kept: Nothing = NOTHING
    """What is worked out about it, kept where somebody keeps it."""

    @property
    def path(self) -> str:
        """The file, as messages name it."""
        return self.source.path


class Restored(Compiled):
    """A node from the cache. Its text, its IR in memory and its cases are read when they are first asked for: a call
    that ends well needs none of them, and they are most of what there is to load."""

    __slots__ = ("_form",)

    def __init__(self, form: dict[str, Any], callees: tuple[Compiled, ...], kept: Nothing) -> None:
        self._form = form
        self.ir = form["ir"]
        self.semantic_hash = form["hash"]
        self.callees = callees
        self.kept = kept

    @property
    def path(self) -> str:
        path: str = self._form["path"]
        return path

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # a slot that is still empty
            if name == "source":
                from vesper.language.diagnostics.source import SourceFile

                found = SourceFile(self._form["path"], self._form["text"])
            elif name in ("node", "cases"):
                from vesper.compiler.node_bytes import restored

                found = restored(self._form[name])
            else:
                raise AttributeError(name)
            setattr(self, name, found)  # two threads may both read it; either will do
            return found
