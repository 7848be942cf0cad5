"""The report of a backtest: the tally with examples, as values that all formats share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from vesper.changes.backtest.backtest import Comparison
from vesper.changes.backtest.cases import Case, Excluded
from vesper.changes.backtest.measures import ExactSum
from vesper.changes.backtest.replay import Ended, Unanswered, Version, ending_text
from vesper.changes.backtest.tally import OTHERS, Group, Sums, Tally
from vesper.changes.backtest.tally import Excluded as ExcludedRuns
from vesper.engines.version_outcomes import interface_changes
from vesper.host.masking import SENSITIVE, Masks, masks_of_versions
from vesper.trace.difference import outcome_text
from vesper.values.model import printable

FindCase = Callable[[str], "Case | Excluded"]


@dataclass(frozen=True, slots=True)
class ShownExample:
    """The smallest run of a kind of change, masked."""

    name: str
    inputs: Mapping[str, object]
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ShownKind:
    kind: str
    runs: int
    example: ShownExample | None


@dataclass(frozen=True, slots=True)
class Report:
    """A finished or stopped backtest."""

    before: str
    after: str
    on: str
    """What was replayed: `the journal sqlite:…`."""
    by: tuple[str, ...]
    sums: tuple[str, ...]
    tally: Tally
    kinds: tuple[ShownKind, ...]
    """The most frequent first."""
    interface: tuple[str, ...]
    """Differences of inputs and outputs, in words."""
    is_complete: bool
    """False where it was stopped: the counts are of the runs so far."""
    seconds: float

    @property
    def changed_share(self) -> float:
        """Share of the compared runs that change. Runs that A does not reproduce are included."""
        return self.tally.changed / self.tally.compared if self.tally.compared else 0.0

    def is_above(self, most: Decimal) -> bool:
        """Return whether more than this share changes. True without a compared run, because nothing is shown then."""
        return self.tally.compared == 0 or self.tally.changed > most * self.tally.compared

    def excluded(self) -> list[tuple[str, ExcludedRuns]]:
        """Return the runs that were not replayed by reason, the most frequent first."""
        return sorted(self.tally.excluded.items(), key=lambda each: (-each[1].runs, each[0]))

    def segments(self, number: int) -> list[tuple[str, Group]]:
        """Return the segments of a `--by`, those with most changes first."""
        groups = self.tally.groups[number] if number < len(self.tally.groups) else {}
        return sorted(groups.items(), key=lambda each: (-each[1].changed, -each[1].runs, each[0]))


def make_report(
    comparison: Comparison,
    tally: Tally,
    on: str,
    find_case: FindCase,
    is_complete: bool,
    seconds: float,
    reveals: bool = False,
) -> Report:
    """Return the report. The example of each kind of change is replayed again to show its values."""
    versions = Version(comparison.before), Version(comparison.after)
    masks = masks_of_versions(*(each.compiled for each in versions))
    shown = []
    for kind, found in sorted(tally.kinds.items(), key=lambda each: (-each[1].runs, each[0])):
        example = None
        if found.example is not None:
            case = found.example.case or find_case(found.example.name)
            if isinstance(case, Case):
                example = _example(case, versions, None if reveals else masks)
        shown.append(ShownKind(kind, found.runs, example))
    return Report(
        comparison.before.node.node_id,
        comparison.after.node.node_id,
        on,
        tuple(each.text for each in comparison.measures.by),
        tuple(each.text for each in comparison.measures.sums),
        tally,
        tuple(shown),
        tuple(each.text for each in interface_changes(comparison.before.node, comparison.after.node)),
        is_complete,
        seconds,
    )


def _example(case: Case, versions: tuple[Version, Version], masks: tuple[Masks, ...] | None) -> ShownExample:
    before, after = (each.replay(case) for each in versions)
    if masks is None:
        return ShownExample(case.name, dict(case.inputs), _outcome(before, None), _outcome(after, None))
    # The run may be of a third version: an input that neither of these declares may be sensitive there.
    declared = {each.name for version in versions for each in version.compiled.node.inputs}
    inputs = {
        name: SENSITIVE if any(each.named("input", name, "shown") == SENSITIVE for each in masks) else value
        for name, value in case.inputs.items()
        if name in declared
    }
    return ShownExample(case.name, inputs, _outcome(before, masks[0]), _outcome(after, masks[1]))


def _outcome(ended: Ended, masks: Masks | None) -> str:
    if isinstance(ended, Unanswered):
        return ending_text(ended)
    return outcome_text(ended if masks is None else masks.outcome(ended))


def segment_text(label: str) -> str:
    """Return the segment of a typed JSON value for people."""
    if label == OTHERS or label.startswith("("):
        return printable(label)
    value: Any = json.loads(label)
    if isinstance(value, dict) and len(value) == 1:
        ((tag, inner),) = value.items()
        value = inner if tag.startswith("$") else value
    return printable(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def share_text(share: float) -> str:
    """Return a share in percent. A share that is not 0 or 100 % is never shown as such."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    return f"{min(max(share, 0.0001), 0.9999):.2%}"


def sum_text(number: ExactSum) -> str:
    return grouped(str(number))


def grouped(text: str) -> str:
    """Return a plain number with separators of thousands."""
    whole, point, rest = text.partition(".")
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    return f"{sign}{int(digits):,}{point}{rest}"


def difference_text(sums: Sums) -> str:
    """Return the change of a sum, with its sign."""
    text = sums.after.minus(sums.before)
    return grouped(text) if text.startswith("-") else f"+{grouped(text)}"
