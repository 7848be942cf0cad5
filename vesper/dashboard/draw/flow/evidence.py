"""Evidence of migration on a flow: which ways each path took, how often, and whether it is proven.

A path names conditions, loops, handlers and results of requests (`vesper/migration/compare/paths.py`). Following the
flow with them yields the ways that it took. Inside a loop a path has the union of its rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from vesper.dashboard.draw.flow.parts import Box, Fork, Handler, LoopPart, Part, Step
from vesper.engines.path import Point, points_of
from vesper.migration.compare.paths import PathNote
from vesper.migration.stores.overview import PathOverview

Way: TypeAlias = tuple[str, int, int]
"""A way through a flow.

`at` and `after` a statement; `arm`, `no` and `end` of a condition by statement and position; `loop` of a statement;
`row` of a table by statement and position; `run` and `resume` of a handler.
"""
State: TypeAlias = Literal["unseen", "unproven", "proven", "diverged"]
SYMBOLS: dict[State, str] = {"unseen": "–", "unproven": "◐", "proven": "✓", "diverged": "✗"}
_FAILED = re.compile(r"failed .* at ([0-9]+)")
_BROKEN = re.compile(r"broken validation ([0-9]+)")
_NOT_ENTERED = re.compile(r"broken (constraint|precondition) .*|failed .* at inputs")


@dataclass(frozen=True, slots=True)
class PathEvidence:
    """A path with evidence, and the ways that it took."""

    letter: str
    runs: int
    """Distinct inputs that agreed, of traffic and generated."""
    is_proven: bool
    divergences: int
    """Open divergences."""
    ways: frozenset[Way]


@dataclass(frozen=True, slots=True)
class WayEvidence:
    """Evidence of one way: the paths that took it."""

    state: State
    runs: int
    share: float
    """Share of the runs of all paths, from 0 to 1."""
    letters: tuple[str, ...]
    divergences: int

    @property
    def short(self) -> str:
        """The state with the share, for places without room."""
        return f"{SYMBOLS[self.state]} {share_text(self.share)}" if self.runs else SYMBOLS[self.state]

    @property
    def text(self) -> str:
        if self.state == "unseen":
            return f"{SYMBOLS['unseen']} not seen"
        diverged = f"{self.divergences} diverged" if self.divergences else ""
        runs = f"{share_text(self.share)} · {self.runs:,}" if self.runs else "" if diverged else "0 runs"
        return f"{SYMBOLS[self.state]} {', '.join(filter(None, (runs, diverged)))}"


class FlowEvidence:
    """Evidence of all paths of a node."""

    def __init__(self, paths: Iterable[PathEvidence]) -> None:
        self.paths = tuple(paths)
        self._total = sum(each.runs for each in self.paths)

    def of(self, way: Way) -> WayEvidence:
        """Return the evidence of a way. It is proven where every path that took it is proven."""
        paths = [each for each in self.paths if way in each.ways]
        runs, divergences = sum(each.runs for each in paths), sum(each.divergences for each in paths)
        state: State = "proven" if all(each.is_proven for each in paths) else "unproven"
        state = "diverged" if divergences else state if paths else "unseen"
        share = runs / self._total if self._total else 0.0
        return WayEvidence(state, runs, share, tuple(each.letter for each in paths), divergences)


def flow_evidence(parts: Sequence[Part], points: Sequence[Point], paths: Iterable[PathOverview]) -> FlowEvidence:
    """Return the evidence of the paths of a node; paths without a readable note are left out."""
    return FlowEvidence(
        PathEvidence(
            each.letter,
            each.seen.clean + each.seen.generated,
            each.is_proven,
            each.seen.open,
            ways_of(parts, points, each.note),
        )
        for each in paths
        if each.note is not None
    )


def ways_of(parts: Sequence[Part], points: Sequence[Point], note: PathNote) -> frozenset[Way]:
    """Return the ways that a path took through the parts of its node."""
    if _NOT_ENTERED.fullmatch(note.ending):
        return frozenset()
    walk = _Walk(points_of(note.points, points), note)
    walk.block(parts, False)
    return frozenset(walk.ways)


def share_text(share: float) -> str:
    """Format a share; a small one is never shown as zero."""
    return "< 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")


class _Walk:
    def __init__(self, passed: Iterable[Point], note: PathNote) -> None:
        listed = list(passed)
        self._conditions = {(each.expression, each.outcome == "true") for each in listed if each.kind == "condition"}
        rounds = [(each.expression, each.outcome) for each in listed if each.kind == "loop"]
        # A loop that its execution left by an end or a failure has no number of rounds: it was entered.
        self._passed_over = {at for at, _ in rounds} - {at for at, outcome in rounds if outcome != "none"}
        self._ran = {each.expression for each in listed if each.kind == "handler"}
        self._settled = note.settled
        failed, broken = _FAILED.fullmatch(note.ending), _BROKEN.fullmatch(note.ending)
        self._failed_at = None if failed is None else int(failed[1])
        self._broken = None if broken is None else int(broken[1])
        self._is_over = False
        self.ways: set[Way] = set()

    def block(self, parts: Sequence[Part], in_loop: bool) -> bool:
        """Follow a block and return whether its end is reached."""
        for part in parts:
            number = part.box.number
            if number is None:  # the value of an arm
                continue
            self.ways.add(("at", number, 0))
            if not self._follow_handlers(part.handlers, self._follow(part, number, in_loop), in_loop):
                return False
            self.ways.add(("after", number, 0))
        return True

    def _follow(self, part: Part, number: int, in_loop: bool) -> bool:
        match part:
            case Step(box):
                return self._follow_step(box, number, in_loop)
            case Fork():
                return self._follow_fork(part, number, in_loop)
            case LoopPart():
                if part.point not in self._passed_over:
                    self.ways.add(("loop", number, 0))
                    self.block(part.parts, True)
                # An execution ends once: one that ended inside did not leave the loop.
                self._is_over |= self._failed_at in part.box.expressions
                return not self._is_over

    def _follow_step(self, box: Box, number: int, in_loop: bool) -> bool:
        """Follow a step and return whether a run, or an earlier round, continued after it."""
        ends = box.kind in ("return", "raise")
        if ends or self._is_end(box):
            self._is_over = True
            return in_loop and not ends
        last = True
        for index, row in enumerate(box.rows):
            is_taken = last if row.when is None else (row.when, True) in self._conditions
            if is_taken:
                self.ways.add(("row", number, index))
            last = (row.when, False) in self._conditions
        results = [each for each in self._settled if each.startswith(f"{box.name}: ")]
        return not results or f"{box.name}: ok" in results

    def _is_end(self, box: Box) -> bool:
        is_broken = box.clause is not None and box.clause == self._broken
        return is_broken or (self._failed_at is not None and self._failed_at in box.expressions)

    def _follow_fork(self, fork: Fork, number: int, in_loop: bool) -> bool:
        continues = False
        for index, rung in enumerate(fork.rungs):
            if (rung.when, True) in self._conditions:
                continues |= self._follow_arm(rung.parts, number, index, in_loop)
            if (rung.when, False) not in self._conditions:
                return continues
            self.ways.add(("no", number, index))
        return self._follow_arm(fork.otherwise, number, len(fork.rungs), in_loop) or continues

    def _follow_arm(self, parts: Sequence[Part], number: int, index: int, in_loop: bool) -> bool:
        self.ways.add(("arm", number, index))
        if not self.block(parts, in_loop):
            return False
        self.ways.add(("end", number, index))
        return True

    def _follow_handlers(self, handlers: Sequence[Handler], continues: bool, in_loop: bool) -> bool:
        """Follow the handlers that ran; return whether the flow continues after them or without them."""
        ran = [each for each in handlers if each.number in self._ran]
        if ran and not in_loop:
            continues = False
        for each in ran:
            self.ways.add(("run", each.number, 0))
            if self.block(each.parts, in_loop) and each.resumes:
                self.ways.add(("resume", each.number, 0))
                continues = True
        return continues
