"""What a node knows of the nodes it calls. Whoever compiles finds them; the checker only asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from vesper.language.diagnostics.codes import Code
from vesper.language.ir import nodes as ir
from vesper.values.types import Type


@dataclass(frozen=True, slots=True)
class Interface:
    """A checked node as its callers see it."""

    node_id: str
    semantic_hash: str
    type: str
    inputs: tuple[tuple[str, Type, bool], ...]
    """Name, type, and whether a call may leave it out."""
    outputs: tuple[tuple[str, Type], ...]
    errors: tuple[tuple[str, Type], ...]
    codes: frozenset[str]
    """All that a call can fail with."""
    capabilities: tuple[str, ...]
    """What it and those it calls need."""
    versions: Mapping[str, str]
    """Of itself and all that it calls, at any depth: the id by name."""
    requests: Mapping[str, ir.Request] = field(default_factory=dict)
    """What it and those it calls can ask for, by path; a caller's cases list them below the name of the call."""

    def callee(self) -> ir.Callee:
        return ir.Callee(self.node_id, self.semantic_hash, self.inputs, self.outputs, self.errors)


@dataclass(frozen=True, slots=True)
class NotCallable:
    """Why a node cannot be called: a diagnostic without its place."""

    code: Code
    holes: Mapping[str, str]
    help: str | None = None


class Callees(Protocol):
    def find(self, wanted: str) -> Interface | NotCallable:
        """The node with this id, or the one that a name without version stands for."""
        ...


class NoCallees:
    """For nodes that stand alone, such as examples in the documentation."""

    def find(self, wanted: str) -> Interface | NotCallable:
        return NotCallable(Code.UNKNOWN_NODE, {"node": wanted}, "nothing is known of other nodes here")
