"""A node as a Host runs it, and the results of its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vesper.compiler import Compiled
from vesper.config.grants import Handle
from vesper.engines.engine import Program
from vesper.engines.outcome import Outcome
from vesper.host.masking import Masks
from vesper.host.plans import Plans
from vesper.journal.entry import Definition
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.decode import decode

if TYPE_CHECKING:
    from vesper._direct import PreparedNode


@dataclass(frozen=True, slots=True)
class Prepared:
    """A node on an engine, with everything that a run of it needs."""

    compiled: Compiled
    program: Program
    engine: str
    plans: Plans
    handles: Mapping[str, Handle]
    refused: Mapping[str, str]
    definition: Definition
    native: Callable[[bool], PreparedNode]
    """Returns the node in the form of the run loop, made at its first run, or its first joined run."""
    masks: Callable[[], Masks]
    """Returns the masks of the audit, made at its first end."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a run."""

    execution: str
    outcome: Outcome
    is_repeat: bool = False
    """True where the outcome is that of an earlier run with the same key."""
    definition: Compiled | None = None
    """The definition of an earlier run, where the node was changed since."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result of recovering a run that another process left."""

    execution: str
    node_id: str
    outcome: Outcome | None
    """None where it waits, is in doubt, or could not be finished."""
    why: str = ""
    is_waiting: bool = False
    """True where it waits for a time, a signal or an answer."""

    @property
    def ending(self) -> str:
        """Return how the run ended, without its values, for a log."""
        return self.why if self.outcome is None else self.outcome.kind


def definition_of(compiled: Compiled) -> Definition:
    """Return the definition to which a run of the node is pinned."""
    return Definition(
        compiled.semantic_hash,
        compiled.node.node_id,
        compiled.source.path,
        compiled.source.text,
        compiled.ir,
        tuple(map(definition_of, compiled.callees)),
    )


def compiled_from(definition: Definition) -> Compiled:
    """Return the node of a run's definition, as it was when the run began."""
    return Compiled(
        SourceFile(definition.path, definition.source),
        decode(definition.ir),
        (),
        definition.ir,
        definition.semantic_hash,
        tuple(map(compiled_from, definition.callees)),
    )
