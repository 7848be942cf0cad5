"""Generated inputs as evidence for rare paths of traffic.

A path with little traffic is compared until it has enough evidence, and its callers wait for both engines. Generated
inputs count for that path only, never for the node. Paths without traffic are left alone, because the number of paths
with evidence is limited.
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
    """The result of `Filler.fill`."""

    tried: int = 0
    found: dict[str, set[int]] = field(default_factory=dict)
    """Fingerprints of inputs on which the engines agreed, by path."""
    trouble: Disagreement | Fault | None = None
    """First disagreement or fault, which ends the filling."""


class Filler:
    """A generator of inputs for the paths of one node without effects."""

    def __init__(self, pair: Pair, key: bytes, seed: int, examples: Sequence[Mapping[str, object]] = ()) -> None:
        """`key` is the key of fingerprints.

        `examples` are inputs with the wanted paths: most drawn inputs are variations of one.
        """
        self._pair = pair
        self._key = key
        self._seed = seed
        cases = [each.inputs for each in pair.compiled.cases]
        self._generator = InputGenerator(pair.compiled.node, seed, examples=examples or cases)
        self._moments = GeneratedResponses(pair.compiled)
        self._seen: set[tuple[str, int]] = set()
        self._drawn = 0

    def fill(self, lacking: Mapping[str, int], max_tries: int, is_over: Callable[[], bool] = lambda: False) -> Filled:
        """Draw inputs until no path lacks evidence, `max_tries` were drawn, or `is_over` returns True.

        `lacking` maps each path to the number of distinct runs that it needs. No fingerprint is returned twice; the
        store removes those that traffic brought.
        """
        filled = Filled()
        left = {path: count for path, count in lacking.items() if count > 0}
        while left and filled.tried < max_tries and not is_over():
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
                    pass  # no verdict: a limit that depends on the machine
        return filled

    def _run(self) -> Report | None:
        self._drawn += 1
        inputs = self._generator.draw()
        is_timed = self._pair.compiled.node.type != "function"
        now = self._moments.now(f"{self._seed} {self._drawn}") if is_timed else None
        return rerun(self._pair, Transcript(inputs, now, (), self._pair.python.call(inputs, now)), self._key)
