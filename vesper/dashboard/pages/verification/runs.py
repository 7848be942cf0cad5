"""Verification of a project: runs of `vesper verify`, branches of each node, disagreements, proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from vesper.dashboard.draw.runs import RunMark, draw_runs
from vesper.dashboard.page import Context, Paging
from vesper.dashboard.pages.verification.proofs import FaultsProof, Proof, read_proofs
from vesper.dashboard.problem import Unavailable
from vesper.dashboard.words import number_text
from vesper.verify.run_history import MAX_RUNS, Disagreement, RunSummary, UncoveredBranch, VerifyRun, read_runs

ROWS_PER_PAGE: Final = 50
MAX_NODES: Final = 200
"""Maximum number of nodes on the page; those that need a look come first."""
_DRAWN_RUNS: Final = 200
_MAX_DISAGREEMENTS: Final = 50


@dataclass(frozen=True, slots=True)
class CoveredNode:
    """A node in the last run that verified it."""

    node: str
    at_us: int | None
    """End of that run; None where no run is in the history."""
    executions: int
    branches_covered: int
    branches_total: int
    uncovered: tuple[UncoveredBranch, ...]
    passed: bool
    is_changed: bool
    """Whether its file is newer than the run."""

    @property
    def share(self) -> float:
        return 1.0 if self.branches_total == 0 else self.branches_covered / self.branches_total


@dataclass(frozen=True, slots=True)
class FoundDisagreement:
    at_us: int
    node: str
    seed: int
    place: Disagreement


@dataclass(frozen=True, slots=True)
class Verification:
    runs: tuple[RunSummary, ...]
    """Runs of this page, newest first."""
    drawn: tuple[RunMark, ...]
    """The newest runs of the history in order of time."""
    nodes: tuple[CoveredNode, ...]
    """Nodes of the project; those that need a look come first, at most `MAX_NODES`."""
    nodes_total: int
    disagreements: tuple[FoundDisagreement, ...]
    proofs: tuple[Proof, ...]
    faults: tuple[FaultsProof, ...]
    rule: str
    """When a proof is stale."""
    max_runs: int
    unread: int
    """Number of lines of the history that this version cannot read."""
    paging: Paging

    @property
    def drawing(self) -> Markup:
        return draw_runs(self.drawn)


def read_verification(context: Context) -> Verification:
    project = context.stores.config.folder
    try:
        runs, unread = read_runs(project)
    except OSError as problem:
        raise Unavailable(
            "the history of `vesper verify`", problem.strerror or str(problem), "Correct its permissions."
        ) from None
    nodes = _nodes(context, runs)
    proofs, faults, rule = read_proofs(project, context.now_us)
    first = (context.page_number() - 1) * ROWS_PER_PAGE
    disagreements = (
        FoundDisagreement(run.summary.at_us, node.node, run.summary.seed, each)
        for run in runs
        for node in run.nodes
        for each in node.disagreements
    )
    return Verification(
        tuple(run.summary for run in runs[first : first + ROWS_PER_PAGE]),
        tuple(_mark(run.summary) for run in reversed(runs[:_DRAWN_RUNS])),
        tuple(nodes[:MAX_NODES]),
        len(nodes),
        tuple(each for each, _ in zip(disagreements, range(_MAX_DISAGREEMENTS), strict=False)),
        proofs,
        faults,
        rule,
        MAX_RUNS,
        unread,
        context.paging(first + ROWS_PER_PAGE < len(runs), len(runs)),
    )


def _mark(run: RunSummary) -> RunMark:
    share = run.branches_covered / run.branches_total if run.branches_total else None
    result = "passed" if run.passed else "interrupted" if run.is_interrupted else "failed"
    text = f"{result}: {number_text(run.executions)} inputs, {run.disagreements} disagreements, seed {run.seed}"
    return RunMark(run.at_us, run.executions, run.passed, share, text)


def _nodes(context: Context, runs: Sequence[VerifyRun]) -> list[CoveredNode]:
    """Return each node with its last run: first failed, changed and uncovered ones, then the others."""
    try:
        paths = context.stores.nodes.paths()
    except Unavailable:
        paths = {}
    found: dict[str, CoveredNode] = {}
    for run in runs:
        for each in run.nodes:
            if each.node not in found and (each.node in paths or not paths):
                is_changed = each.node in paths and paths[each.node].stat().st_mtime_ns // 1000 > run.summary.at_us
                found[each.node] = CoveredNode(
                    each.node,
                    run.summary.at_us,
                    each.executions,
                    each.branches_covered,
                    each.branches_total,
                    each.uncovered,
                    each.passed,
                    is_changed,
                )
    absent = [CoveredNode(node, None, 0, 0, 0, (), False, False) for node in paths if node not in found]
    return sorted((*found.values(), *absent), key=lambda each: (_rank(each), each.share, each.node))


def _rank(node: CoveredNode) -> int:
    """Return the sort key of a node: failed, changed, never verified, then the others."""
    if node.at_us is None:
        return 2
    return 0 if not node.passed else 1 if node.is_changed else 3
