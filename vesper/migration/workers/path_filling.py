"""Rare paths, filled: both engines run inputs that nobody sent, as evidence for the paths that traffic has taken.

A path that few requests take is compared for as long as it lacks its evidence, and its callers wait for both engines.
Generated inputs may stand for what it lacks, and for nothing else: what traffic counts is what traffic brought. Paths
that traffic never took are left alone, however many of them generated inputs find: there is room for so many only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from vesper.migration.compare.reports import Agreement, Disagreement, Fault, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.workers.rerun import Pair, rerun
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import GeneratedResponses


@dataclass(slots=True)
class Filled:
    """What came of it."""

    tried: int = 0
    found: dict[str, set[int]] = field(default_factory=dict)
    """Fingerprints of inputs on which the engines agreed, by the path that lacked them."""
    trouble: Disagreement | Fault | None = None
    """The first input on which they did not agree; it ends it."""


class Filler:
    """Draws inputs for the paths of one node without effects."""

    def __init__(self, pair: Pair, key: bytes, seed: int, examples: Sequence[Mapping[str, object]] = ()) -> None:
        """`key` is that of fingerprints. `examples` are inputs that took the paths: what is drawn is often a variation
        of one, and takes the same."""
        self._pair = pair
        self._key = key
        self._seed = seed
        cases = [each.inputs for each in pair.compiled.cases]
        self._generator = InputGenerator(pair.compiled.node, seed, examples=examples or cases)
        self._moments = GeneratedResponses(pair.compiled)
        self._seen: set[tuple[str, int]] = set()
        self._drawn = 0

    def fill(self, lacking: Mapping[str, int], most: int, is_over: Callable[[], bool] = lambda: False) -> Filled:
        """Draws until no path lacks any more, there were so many, or it is over. `lacking` is how many distinct runs
        each path lacks. Nothing is found twice; whether traffic brought it before, the store knows."""
        filled = Filled()
        left = {path: count for path, count in lacking.items() if count > 0}
        while left and filled.tried < most and not is_over():
            filled.tried += 1
            match self._run():
                case Agreement(note, fingerprint):
                    path = note.name
                    if path not in left or (path, fingerprint) in self._seen:
                        continue
                    self._seen.add((path, fingerprint))
                    filled.found.setdefault(path, set()).add(fingerprint)
                    if len(filled.found[path]) >= left[path]:
                        del left[path]
                case Disagreement() | Fault() as trouble:
                    filled.trouble = trouble
                    break
                case _:
                    pass  # it came to nothing: a limit that depends on the machine
        return filled

    def _run(self) -> Report | None:
        self._drawn += 1
        inputs = self._generator.draw()
        is_timed = self._pair.compiled.node.type != "function"
        now = self._moments.now(f"{self._seed} {self._drawn}") if is_timed else None
        return rerun(self._pair, Transcript(inputs, now, (), self._pair.python.call(inputs, now)), self._key)
