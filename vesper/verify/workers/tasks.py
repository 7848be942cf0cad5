"""Tasks of a worker, and the messages that it sends about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.engine import Engine
from vesper.verify.corpus import KeptProgram
from vesper.verify.differential.against import Function
from vesper.verify.differential.coverage import CoverageState
from vesper.verify.differential.verifier import MAX_DISAGREEMENTS, Report
from vesper.verify.differential.ways.way import WayMaker
from vesper.verify.programs.campaign import ProgramsReport
from vesper.verify.workers.crashes import Crash, Ending


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything that tasks refer to. Workers inherit it, so engines and functions need no encoding."""

    nodes: Sequence[Compiled]
    engines: Mapping[str, Engine]
    seed: int
    function: Function | None = None
    ways: Sequence[WayMaker] = ()
    kept: Sequence[KeptProgram] = ()
    """Kept programs, which run before random ones."""
    documents: Sequence[str] = ()
    """Texts of nodes, of which every fourth program is a variant; without any, all programs are random."""

    def is_variant(self, number: int) -> bool:
        """Return whether the program of this number is a variant of a node."""
        return bool(self.documents) and number % 4 == 3


@dataclass(frozen=True, slots=True)
class NodeTask:
    """Some inputs of a node."""

    node: int
    numbers: range
    seconds: float | None = None
    """Time limit of the task."""
    skipped: frozenset[int] = frozenset()
    """Numbers of inputs and cases that ended an earlier worker."""
    left_out: frozenset[str] = frozenset()
    """Ways that ended an earlier worker."""
    known: CoverageState | None = None
    """Coverage of earlier tasks."""
    stop_after: int = MAX_DISAGREEMENTS
    is_continued: bool = False
    """True if other tasks of the node may follow, so that its programs are worth keeping."""
    is_hanging: bool = False
    """True if an input of the node hung before: later ones get less time."""


@dataclass(frozen=True, slots=True)
class ProgramsTask:
    """Some random programs by number, or kept programs by index."""

    numbers: tuple[int, ...]
    seconds: float | None = None
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class ReductionTask:
    """A crash whose inputs or program are to be made smaller, each candidate in a process of its own."""

    crash: Crash
    node: int | None = None
    program: int | None = None
    """Number of a random program; None for a node."""


Task: TypeAlias = NodeTask | ProgramsTask | ReductionTask


@dataclass(frozen=True, slots=True)
class NodeResult:
    """Report of a task, or of its part so far."""

    report: Report
    is_partial: bool
    has_grown: bool = False
    state: CoverageState | None = None


@dataclass(frozen=True, slots=True)
class ProgramResult:
    number: int
    report: ProgramsReport
    """Report of this program. Its failure has no compiled node, which cannot be sent."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """A smaller form of a crash."""

    inputs: dict[str, object] | None
    text: str | None = None
    """The program."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception ended the task."""

    ending: Ending
    traceback: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """The user's function returned something that is no outcome of the node."""

    message: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The task is done."""


Message: TypeAlias = NodeResult | ProgramResult | Reduced | Raised | Unusable | Finished
