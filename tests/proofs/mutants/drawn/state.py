"""What is known of the drawn mutants, kept under `.proofs/` between runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.proofs.mutants import planted
from tests.proofs.mutants.drawn import report
from tests.proofs.mutants.drawn.draw import Mutant
from tests.proofs.robustness.proof import STATE, read_json, write_json

NAME = "mutants"
WORK = STATE / NAME
PACKAGE = WORK / "package"
KEEP_EVERY_SECONDS = 20

Result = dict[str, Any]


def read_mutants() -> tuple[list[Mutant], Result]:
    """Return the mutants of the build, and what it was made from."""
    known = read_json(WORK / "woven.json")
    assert known is not None, "nothing was woven"
    mutants = []
    for each in known.pop("mutants"):
        edits = tuple((start, end, text) for start, end, text in each.pop("edits"))
        mutants.append(Mutant(**{**each, "body": tuple(each["body"])}, edits=edits))
    return mutants, {"drawn_hash": known["drawn_hash"], "seed": known["seed"]}


@dataclass(slots=True)
class Campaign:
    """The mutants, and what is known of each."""

    mutants: list[Mutant]
    state: Result
    file: Path
    processes: int
    begun: float = field(default_factory=time.monotonic)

    @property
    def results(self) -> dict[str, Result]:
        results: dict[str, Result] = self.state["results"]
        return results

    def of(self, name: str) -> Result:
        return self.results.setdefault(name, {"verified_batches": 0, "verified_seconds": 0.0, "is_reached": False})

    def alive(self, *stages: str) -> list[str]:
        """Return those that none of these stages has noticed."""
        return [each.name for each in self.mutants if not any(self.of(each.name).get(stage) for stage in stages)]

    def keep_sometimes(self) -> None:
        if time.monotonic() - self.begun > KEEP_EVERY_SECONDS:
            self.keep()

    def keep(self) -> None:
        now = time.monotonic()
        self.state["elapsed_seconds"] = round(self.state["elapsed_seconds"] + now - self.begun, 1)
        self.begun = now
        write_json(self.file, self.state)
        text = report.survivors_text(self.mutants, self.results, report.equivalent_mutants())
        (WORK / "survivors.md").write_text(text, encoding="utf-8")
        noticed = sum(report.is_killed(self.of(each.name)) for each in self.mutants)
        print(f"{noticed} of {len(self.mutants)} are noticed", flush=True)

    @classmethod
    def opened(cls, processes: int) -> Self:
        """Go on with the state of these mutants and sources, or begin one."""
        mutants, made = read_mutants()
        identity = {**made, "verified_hash": planted.hashed({**planted.python_packages(), "nodes": "*.vsp"})}
        file = WORK / "state.json"
        state = read_json(file) or {}
        if state.get("identity") != identity:
            state = {"identity": identity, "elapsed_seconds": 0.0, "batches": [], "control": [], "results": {}}
        return cls(mutants, state, file, processes)
