"""Results of checked relations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vesper.engines.outcome import Outcome

if TYPE_CHECKING:
    from vesper.language.ir.nodes import Node


@dataclass(frozen=True, slots=True)
class RelationFailure:
    """A rewriting that differs from its node: a defect of Vesper."""

    relation: str
    law: str
    node: Node
    kind: str
    """`outcome`, `requests`, `refused` or `raised`."""
    rewriting: str
    """The rewritten document."""
    engine: str = ""
    inputs: dict[str, object] = field(default_factory=dict)
    """The smallest inputs found."""
    converted: dict[str, object] = field(default_factory=dict)
    """The inputs of the rewriting."""
    expected: Outcome | None = None
    found: Outcome | None = None
    rewritten: Node | None = None
    """The rewritten node, where it compiles."""
    detail: str = ""
    """The diagnostic or the traceback."""


@dataclass(slots=True)
class RelationsReport:
    seed: int
    engines: tuple[str, ...]
    nodes: int = 0
    checked: dict[str, int] = field(default_factory=dict)
    """Rewritings that were compared, by relation."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Rewritings that the checker refused for a lost fact about null or a literal, by relation."""
    same_ir: int = 0
    """Rewritings with the node's own semantic hash, whose outcomes cannot differ."""
    executions: int = 0
    not_comparable: int = 0
    failures: list[RelationFailure] = field(default_factory=list)
    elapsed_seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.failures

    def add(self, other: RelationsReport) -> None:
        """Add the counts and failures of another node."""
        for mine, theirs in ((self.checked, other.checked), (self.left_out, other.left_out)):
            for name, times in theirs.items():
                mine[name] = mine.get(name, 0) + times
        self.nodes += other.nodes
        self.same_ir += other.same_ir
        self.executions += other.executions
        self.not_comparable += other.not_comparable
        self.failures += other.failures
        self.elapsed_seconds += other.elapsed_seconds
