"""Interfaces of called nodes, as the checker sees them. The compiler finds the nodes; the checker reads only these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from vesper.language.diagnostics.codes import Code
from vesper.language.ir import nodes as ir
from vesper.language.ir.taint import Taint
from vesper.values.types import Type

if TYPE_CHECKING:  # a library is checked with the protocol below
    from vesper.language.check.libraries import Library
    from vesper.language.check.overlay import Overlay


@dataclass(frozen=True, slots=True)
class Interface:
    """The interface of a checked node for its callers."""

    node_id: str
    semantic_hash: str
    type: str
    inputs: tuple[tuple[str, Type, bool], ...]
    """Name, type, and whether a call may omit the input."""
    outputs: tuple[tuple[str, Type], ...]
    errors: tuple[tuple[str, Type], ...]
    codes: frozenset[str]
    """Every code with which a call can fail."""
    capabilities: tuple[str, ...]
    """Capabilities that the node and the nodes it calls need."""
    versions: Mapping[str, str]
    """Id by name, of this node and of every node called below it."""
    sensitive: tuple[str, ...] = ()
    """Inputs that the node declares sensitive."""
    taint: Taint = field(default_factory=Taint)
    """Flags of its values, by its inputs."""
    requests: Mapping[str, ir.Request] = field(default_factory=dict)
    """Requests that the node and the nodes it calls can make, by path.

    A caller's cases list them below the call's name.
    """
    flags: Mapping[str, str] = field(default_factory=dict)
    """Inputs that are true where a call omits another one, and that one."""

    chains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Ids from this node to the one that uses a capability, by capability."""

    node: ir.Node | None = None
    """The node itself, for callers that inline it."""

    def callee(self) -> ir.Callee:
        """Return the interface in the form that the IR of a caller holds."""
        return ir.Callee(self.node_id, self.semantic_hash, self.inputs, self.outputs, self.errors)


@dataclass(frozen=True, slots=True)
class NotCallable:
    """The reason why a node cannot be called, as a diagnostic without its location."""

    code: Code
    holes: Mapping[str, str]
    help: str | None = None


class Callees(Protocol):
    """Source of the interfaces of called nodes, and of used libraries."""

    overlay: Overlay | None
    """Entries that replace values of parameters."""

    def library(self, wanted: str) -> Library | NotCallable:
        """Return the library with this id, or the one that a name without version selects."""
        ...

    def find(self, wanted: str) -> Interface | NotCallable:
        """Return the node with this id, or the node that a name without version selects."""
        ...


class NoCallees:
    """A source without nodes, for nodes checked alone, such as examples in the documentation."""

    overlay: Overlay | None = None

    def library(self, wanted: str) -> Library | NotCallable:
        return NotCallable(Code.UNKNOWN_LIBRARY, {"library": wanted}, "libraries are not available here")

    def find(self, wanted: str) -> Interface | NotCallable:
        return NotCallable(Code.UNKNOWN_NODE, {"node": wanted}, "other nodes are not available here")
