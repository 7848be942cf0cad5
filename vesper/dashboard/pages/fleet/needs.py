"""Reasons why a node needs a person, each with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from vesper.dashboard.page import filled
from vesper.journal.moments import number, time_text
from vesper.migration.control.controller import missing_conditions
from vesper.migration.control.modes import LADDER, Mode, Reason
from vesper.migration.control.state import Latch, NodeState
from vesper.values.model import printable


class NeedKind(Enum):
    """Kinds of reasons why a node needs a person, the most urgent first."""

    UNREADABLE = "unreadable state"
    IN_DOUBT = "in doubt"
    LATCHED = "latched"
    KILLED = "killed"
    DIVERGENCE = "divergence"
    NOISE = "noise"
    APPROVAL = "approval"

    @property
    def urgency(self) -> int:
        return list(NeedKind).index(self)


@dataclass(frozen=True, slots=True)
class Need:
    """One reason why a node needs a person."""

    kind: NeedKind
    why: str
    do: str
    link: str
    """Address of the page where it is done."""


def needs_of(
    node: str, state: NodeState | None, problem: str | None, highest: Mode | None, in_doubt: int
) -> list[Need]:
    """Return why a node needs a person, the most urgent first; nothing where it needs none."""
    found = [*_of_journal(node, in_doubt)]
    if problem is not None:
        do = "Restore the store, or run the node with the Vesper that wrote it."
        found.append(Need(NeedKind.UNREADABLE, f"{problem}, so only Python runs", do, _page(node)))
    if state is not None:
        found += _of_state(node, state, highest)
    return sorted(found, key=lambda each: each.kind.urgency)


def _of_journal(node: str, in_doubt: int) -> Iterator[Need]:
    if in_doubt:
        why = f"{number(in_doubt, 'run')} stopped with a request that may or may not have been performed"
        do = "Ask the provider, then resolve each run in the journal."
        yield Need(NeedKind.IN_DOUBT, why, do, filled("/journal?node={node}", {"node": node}))


def _of_state(node: str, state: NodeState, highest: Mode | None) -> Iterator[Need]:
    for latch in state.latches:
        if latch.reason is Reason.KILL:
            why = f"killed at {time_text(latch.at_us)} by {printable(latch.who)}: {printable(latch.why)}"
            yield Need(NeedKind.KILLED, why, "Resume it when the cause is fixed.", _page(node))
        else:
            yield Need(NeedKind.LATCHED, _latch_text(latch), "Find the cause, then resume the node.", _page(node))
    if state.open:
        is_one = len(state.open) == 1
        count = number(len(state.open), "divergence")
        why = f"{count} {'is' if is_one else 'are'} open: the engines gave different answers"
        do = f"Compare both answers, fix the cause, then close {'it' if is_one else 'them'}."
        yield Need(NeedKind.DIVERGENCE, why, do, _divergences(node))
    if state.noise:
        why = f"an engine differs from itself at {number(len(state.noise), 'place')}, which blocks promotion"
        yield Need(NeedKind.NOISE, why, "Remove what is random, then close it.", _divergences(node))
    if (after := waits_for_approval(state, highest)) is not None:
        why = f"it has the evidence for {after.value} and waits for the approval of a person"
        yield Need(NeedKind.APPROVAL, why, "Look at the evidence, then promote it.", _page(node))


def waits_for_approval(state: NodeState, highest: Mode | None) -> Mode | None:
    """Return the mode that lacks only the approval of a person; None where there is no such mode."""
    if not state.settings.approvals or state.mode is LADDER[-1]:
        return None
    after = LADDER[state.mode.level + 1]
    if after not in state.settings.approvals or (highest is not None and after.level > highest.level):
        return None
    missing = missing_conditions(state)
    return after if len(missing) == 1 and missing[0].count is None and "approval" in missing[0].what else None


def _latch_text(latch: Latch) -> str:
    reason = latch.reason.value.replace("_", " ")
    return f"stopped at {time_text(latch.at_us)} by {printable(latch.who)}, {reason}: {printable(latch.why)}"


def _divergences(node: str) -> str:
    return filled("/divergences?node={node}", {"node": node})


def _page(node: str) -> str:
    return filled("/nodes/{node}", {"node": node})
