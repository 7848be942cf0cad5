"""The backtest itself: replays two versions on every case and counts how their endings differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from vesper.changes.backtest.cases import Case, Excluded
from vesper.changes.backtest.kinds import Kinds, NotCompared
from vesper.changes.backtest.measures import Measure, Measures, Missing
from vesper.changes.backtest.replay import ENGINE, Ended, Unanswered, Version, ending_text
from vesper.changes.backtest.tally import Example, Group, Sums, Tally
from vesper.compiler import Compiled
from vesper.engines.outcome import (
    ContractBroken,
    DeclaredError,
    Denied,
    EngineFault,
    Failed,
    LimitHit,
    Outcome,
    Returned,
)
from vesper.journal.typed_json import encode, encode_text

FAILED_LABEL = "(the expression fails)"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The two versions of a backtest, with their kinds of change and their measures."""

    before: Compiled
    after: Compiled
    kinds: Kinds
    measures: Measures


class Backtest:
    """Compares two versions case by case. `tally` has the counts so far, at any time."""

    def __init__(self, comparison: Comparison, engine: str = ENGINE) -> None:
        self._comparison = comparison
        self._before = Version(comparison.before, engine)
        self._after = Version(comparison.after, engine)
        self.tally = Tally()

    def run(self, cases: Iterable[Case | Excluded]) -> Iterator[int]:
        """Compare the cases; yield how many were seen after each."""
        for number, case in enumerate(cases, start=1):
            if isinstance(case, Excluded):
                self.tally.exclude(case.reason, 1, (case.name,))
            else:
                self._compare(case)
            yield number

    def endings(self, case: Case) -> tuple[Ended, Ended]:
        """Return how both versions end on a case."""
        return self._before.replay(case), self._after.replay(case)

    def _compare(self, case: Case) -> None:
        tally, measures = self.tally, self._comparison.measures
        before = self._before.replay(case)
        if measures.where is not None:
            selected = measures.where.value(before, case, is_after=False)
            if selected is not True:
                tally.not_selected += selected is False
                tally.not_decided += selected is not False
                return
        if isinstance(before, Unanswered):
            tally.unanswered_before[before.step] += 1
            return
        after = self._after.replay(case)
        try:
            kind = self._comparison.kinds.kind(before, after)
        except NotCompared as reason:
            tally.not_compared[str(reason)] += 1
            return
        is_reproduced = reproduces(before, case.recorded)
        if not is_reproduced:
            tally.apart_other_definition += case.semantic_hash != self._comparison.before.semantic_hash
        self._count(tally.total if is_reproduced else tally.apart, kind, before, after, case)
        if is_reproduced:
            for number, measure in enumerate(measures.by):
                label = segment_label(measure, before, case, self._comparison.kinds.hides_codes)
                self._count(tally.group(number, label), kind, before, after, case)
        if kind is None:
            return
        tally.add_kind(kind, 1, Example(case.size, case.name, case))
        if isinstance(after, Unanswered):
            tally.unanswered_after[after.step] += 1

    def _count(self, group: Group, kind: str | None, before: Ended, after: Ended, case: Case) -> None:
        group.runs += 1
        group.changed += kind is not None
        for number, measure in enumerate(self._comparison.measures.sums):
            if len(group.sums) <= number:
                group.sums.append(Sums())
            sums = group.sums[number]
            one, other = measure.value(before, case, is_after=False), measure.value(after, case, is_after=True)
            if isinstance(one, int | Decimal):
                sums.before.add(one)
            else:
                sums.without_before += 1
            if isinstance(other, int | Decimal):
                sums.after.add(other)
            else:
                sums.without_after += 1


def segment_label(measure: Measure, before: Ended, case: Case, hides_codes: bool) -> str:
    """Return the segment of a run: the typed JSON of the value, or in brackets why there is none."""
    value = measure.value(before, case, is_after=False)
    if value is Missing.NO_OUTPUT:
        return f"({ending_text(before, hides_codes)})"
    return FAILED_LABEL if value is Missing.FAILED else encode_text(value)


def reproduces(replayed: Ended, recorded: Outcome | None) -> bool:
    """Return whether a replay ends as recorded: the same values, code or phase; places do not count.

    A limit or a refusal of the Host is nothing to reproduce.
    """
    match replayed, recorded:
        case (_, None | LimitHit() | EngineFault() | Denied()):
            return True
        case (Returned(value), Returned(other)) | (DeclaredError(value), DeclaredError(other)):
            return encode(dict(value)) == encode(dict(other))
        case (Failed(code), Failed(other_code)):
            return str(code) == str(other_code)
        case (ContractBroken(phase), ContractBroken(other_phase)):
            return phase == other_phase
        case _:
            return False
