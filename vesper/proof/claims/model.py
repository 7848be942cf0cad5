"""Claims and their results as data, which caches, files and reports share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

ClaimKey: TypeAlias = tuple[str, str, int, str]
"""Kind, phase or table, number and failure code."""
CLAUSE, OPERATION, COMPLETE, DISJOINT, ROW, CONDITION = (
    "clause", "operation", "complete", "disjoint", "row", "condition",
)  # fmt: skip
PROMISES = ("postcondition", "invariant")
_COMPLETE_HITS = ("unique", "any")
"""Hit policies under which some row must match."""


class Verdict(StrEnum):
    PROVEN = "proven"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement about every legal input of a node."""

    kind: str
    """`clause`: it holds. `operation`: it never fails with `code`. `complete`, `disjoint`: of a decision table.

    `row`, `condition`: some input reaches it, of a condition with the value in `code`.
    """
    group: str
    """Phase of a clause, else the name of a table, else nothing."""
    number: int
    """Number of a clause in its phase or of a row in its table, else the index of the expression."""
    code: str
    """Failure code of an operation, `true` or `false` of a condition, hit policy of a table, else nothing."""
    index: int
    """Index of the expression."""
    text: str
    """The author's text, or the name of the operation."""
    place: tuple[int, int, int, int]

    @property
    def key(self) -> ClaimKey:
        return self.kind, self.group, self.number, self.code

    @property
    def is_defect_if_refuted(self) -> bool:
        """Whether a witness against the claim is a defect of the node, and not an outcome that it may have."""
        if self.kind == CLAUSE:
            return self.group in PROMISES
        if self.kind == COMPLETE:
            return self.code in _COMPLETE_HITS
        return self.kind == ROW or (self.kind == DISJOINT and self.code == "unique")


@dataclass(frozen=True, slots=True)
class Witness:
    """An input that ran on both engines and shows a refutation."""

    inputs: str
    """The inputs as text."""
    case: str | None
    """The inputs as a case of the node; None where they cannot be written."""
    outcome: str
    """What both engines returned."""


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on a claim."""

    claim: Claim
    verdict: Verdict
    reason: str | None = None
    """Why it is unknown; of other verdicts a remark."""
    witness: Witness | None = None


@dataclass(slots=True)
class NodeProof:
    """The results of one node."""

    node_id: str
    semantic_hash: str
    results: list[Result] = field(default_factory=list)
    seconds: float = 0.0
    time_limit: float = 0.0
    is_cached: bool = False
    processor_seconds: float = 0.0
    """Processor time of the proof; the time limit where it was cut short."""

    def counted(self, kinds: Iterable[str]) -> dict[Verdict, int]:
        """Return the number of results by verdict."""
        listed = [each.verdict for each in self.results if each.claim.kind in set(kinds)]
        return {verdict: listed.count(verdict) for verdict in Verdict}

    def of_kind(self, *kinds: str) -> Iterator[Result]:
        return (each for each in self.results if each.claim.kind in kinds)

    @property
    def defects(self) -> list[Result]:
        return [each for each in self.results if each.verdict is Verdict.REFUTED and each.claim.is_defect_if_refuted]

    @property
    def is_cut_short(self) -> bool:
        """Whether a longer time limit may decide more."""
        return any(each.reason is not None and each.reason.startswith(TIME_LIMIT) for each in self.results)


TIME_LIMIT = "time limit"
"""Beginning of the reason of claims that were not decided in time."""


def result_to_data(result: Result) -> dict[str, Any]:
    """Return a result as plain data."""
    claim, witness = result.claim, result.witness
    shown = None if witness is None else (witness.inputs, witness.case, witness.outcome)
    told = (claim.kind, claim.group, claim.number, claim.code, claim.index, claim.text, claim.place)
    return {"claim": told, "verdict": result.verdict.value, "reason": result.reason, "witness": shown}


def result_from_data(data: dict[str, Any]) -> Result:
    """Return the result of plain data."""
    kind, group, number, code, index, text, place = data["claim"]
    witness = None if data["witness"] is None else Witness(*data["witness"])
    claim = Claim(kind, group, number, code, index, text, tuple(place))
    return Result(claim, Verdict(data["verdict"]), data["reason"], witness)
