"""`make proof-compare`: 300 planted changes in all nodes, and 60 refactorings that keep the meaning.

For every planted change `compare` must find a witness, prove the versions equal, or the change is listed in
`equivalents.json` with the reason why it changes nothing. Each witness runs once more on generated Python, compared by
a rule of a few lines that shares no code with the product. As a control, an input that does not differ is offered as a
witness, which must be refused.
No refactoring may be reported different, and at least half must be proven equal. What is done is kept under `.proofs/`;
the same command goes on where it was stopped, unless the sources have changed since.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.comparing.planting import Site, planted_sites  # noqa: E402  # after the path is set
from tests.proofs.comparing.refactorings import RELATIONS, refactorings  # noqa: E402
from tests.proofs.robustness.proof import STATE, hash_of, read_json, write_json, write_proof  # noqa: E402
from vesper.changes.compare.comparing import CompareLimits, CompareResult, compare_versions  # noqa: E402
from vesper.changes.compare.versions import Given, VersionPair  # noqa: E402
from vesper.changes.compare.witness import NotDifferent, WitnessMaker  # noqa: E402
from vesper.compiler import Compiled  # noqa: E402
from vesper.engines.engine import Done  # noqa: E402
from vesper.values.model import show  # noqa: E402

NAME = "compare"
CHANGES, REFACTORINGS, SEED = 300, 60, 20_261_118
LIMITS = CompareLimits(seconds=40, max_inputs=12_000, max_witnesses=1, plateau=64)
REFACTORING_LIMITS = CompareLimits(seconds=30, max_inputs=1_000)
EQUIVALENTS = Path(__file__).with_name("equivalents.json")


def nodes() -> list[Path]:
    return sorted((ROOT / "nodes").rglob("*.vsp"))


def examine(before: Compiled, after: Compiled, limits: CompareLimits) -> dict[str, Any]:
    """Compare two versions; every witness is checked by `really_differs`, and a wrong one must be refused."""
    result = compare_versions(before, after, limits, SEED)
    found: dict[str, Any] = {
        "verdict": result.verdict,
        "reason": result.reason,
        "solver": result.solver,
        "inputs": result.searched.tried,
        "seconds": round(result.seconds, 2),
    }
    for witness in result.witnesses:
        if not really_differs(result.pair, witness.given):
            raise AssertionError(f"a witness does not differ: {witness.given}")
        found["witness"] = {name: show(value) for name, value in witness.given.inputs.items()}
        found["where"] = witness.changed.where
    found["control"] = _control(result)
    return found


def really_differs(pair: VersionPair, given: Given) -> bool:
    """Run both versions on generated Python and compare them by their texts."""
    answer = pair.answering(given)
    before, after = (_text(version.run_observed(given, answer), pair) for version in pair.versions)
    return before != after


def _text(done: Done, pair: VersionPair) -> list[str]:
    """Return an execution as text: its common fields, or its ending without places, and what it requested."""
    outcome: Any = done.outcome
    value = getattr(outcome, "value", None)
    if value is not None:
        common = set.intersection(
            *({each.name for each in (*one.node.outputs, *one.node.errors)} for one in pair.versions)
        )
        ending = f"{outcome.kind} {[(name, _plain(value[name])) for name in sorted(common) if name in value]}"
    else:
        is_refused = outcome.kind == "failed" and outcome.at is None
        code = "refused" if is_refused else getattr(outcome, "code", None) or getattr(outcome, "phase", "")
        ending = f"{outcome.kind} {code}"
    asked = [f"{each.effect} {_plain({**each.fixed, **each.arguments})} {each.key}" for each in done.requests]
    return [ending, *asked]


def _plain(value: object) -> str:
    match value:
        case dict():
            return str(sorted((str(name), _plain(each)) for name, each in value.items()))
        case list() | tuple():
            return str([_plain(each) for each in value])
        case set() | frozenset():
            return str(sorted(map(str, value)))
        case _:
            return f"{type(value).__name__} {value}"


def _control(result: CompareResult) -> str:
    """Offer an input that does not differ as a witness: it must be refused."""
    pair = result.pair
    for number in range(50):
        given = pair.make_given(_drawn(pair, number), f"control {number}")
        if not really_differs(pair, given):
            try:
                WitnessMaker(pair).witness(given)
            except NotDifferent:
                return "refused"
            raise AssertionError(f"an input that does not differ was taken for a witness: {given}")
    return "none: every drawn input differs"


def _drawn(pair: VersionPair, number: int) -> dict[str, object]:
    from vesper.verify.inputs.generator import InputGenerator

    return InputGenerator(pair.union_node(pair.before), number).draw()


def campaign(changes: int, refactored: int, seconds: float) -> int:
    until = time.monotonic() + seconds
    planted, rewritten = _Part("changes"), _Part("refactorings")
    for site in planted_sites(SEED, nodes()):
        if planted.count >= changes or time.monotonic() >= until:
            break
        if site.id not in planted.done:
            planted.add(site.id, _examine_site(site))
    for each in refactorings(SEED, nodes(), skip=frozenset(rewritten.done)):
        if rewritten.count >= refactored or time.monotonic() >= until:
            break
        rewritten.add(each.id, examine(each.before, each.after, REFACTORING_LIMITS))
    return _finish(planted, rewritten)


class _Part:
    """One half of the campaign, whose results are stored one by one."""

    def __init__(self, name: str) -> None:
        self._file = STATE / f"{NAME}_{name}.json"
        self.sources = _sources()
        known = read_json(self._file) or {}
        is_current = known.get("source_hash") == self.sources
        self.done: dict[str, dict[str, Any] | None] = known["done"] if is_current else {}
        self.elapsed: float = known["elapsed_seconds"] if is_current else 0.0
        self._begun = time.monotonic()

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """Return the results; a change that the checker refuses has none."""
        return {name: each for name, each in self.done.items() if each is not None}

    @property
    def count(self) -> int:
        return len(self.results)

    def add(self, name: str, found: dict[str, Any] | None) -> None:
        now = time.monotonic()
        self.elapsed, self._begun = self.elapsed + now - self._begun, now
        self.done[name] = found
        write_json(self._file, {"source_hash": self.sources, "elapsed_seconds": self.elapsed, "done": self.done})
        if sys.stderr.isatty():
            print(f"\r{self._file.stem}: {self.count}", end="", file=sys.stderr, flush=True)


def _sources() -> str:
    """Return the hash of what compares, proves and plants, and of the nodes."""
    packages = [ROOT / "vesper/changes/compare", ROOT / "vesper/proof", Path(__file__).parent]
    return hash_of([*(path for each in packages for path in each.rglob("*.py")), *nodes()])


def _examine_site(site: Site) -> dict[str, Any] | None:
    """Return None for a change that the checker refuses."""
    planted = site.compile()
    if planted is None:
        return None
    found = examine(planted.before, planted.after, LIMITS)
    return {
        "kind": site.kind,
        "node": planted.node,
        "line": planted.line,
        "was": planted.was,
        "now": planted.now,
    } | found


def _finish(changes: _Part, rewritten: _Part) -> int:
    equivalents = json.loads(EQUIVALENTS.read_text(encoding="utf-8"))
    planted, done = changes.results, rewritten.results
    open_ = [name for name, each in planted.items() if each["verdict"] == "none found" and name not in equivalents]
    wrong = [name for name, each in planted.items() if each["verdict"] == "different" and name in equivalents]
    different = [name for name, each in done.items() if each["verdict"] == "different"]
    proven = sum(each["verdict"] == "equal" for each in done.values())
    proof = {
        "source_hash": changes.sources,
        "seed": SEED,
        "changes": len(planted),
        "nodes": len({each["node"] for each in planted.values()}),
        "kinds": dict(Counter(each["kind"] for each in planted.values())),
        "verdicts": dict(Counter(each["verdict"] for each in planted.values())),
        "judged_equivalent": sum(name in equivalents for name in planted),
        "without_witness": open_,
        "controls_refused": sum(each["control"] == "refused" for each in (*planted.values(), *done.values())),
        "seconds_per_change": _quantiles([each["seconds"] for each in planted.values()]),
        "refactorings": len(done),
        "relations": len({name.partition(" ")[0] for name in done}),
        "refactorings_proven_equal": proven,
        "refactorings_reported_different": different,
        "elapsed_seconds": round(changes.elapsed + rewritten.elapsed, 1),
    }
    print(json.dumps(proof, indent=2))
    is_whole = len(planted) >= CHANGES and len(done) >= REFACTORINGS
    if is_whole:
        write_proof(NAME, proof)
    return 1 if open_ or wrong or different or (is_whole and proven * 2 < len(done)) else 0


def _quantiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds) or [0.0]
    return {"median": ordered[len(ordered) // 2], "worst": ordered[-1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--refactorings", type=int, default=REFACTORINGS)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop then; the next run goes on")
    asked = parser.parse_args()
    assert RELATIONS
    sys.exit(campaign(asked.changes, asked.refactorings, asked.seconds))


if __name__ == "__main__":
    main()
