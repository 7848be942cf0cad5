"""A person's decisions about a candidate: promote, withdraw or resume.

A decision is one transaction, which processes that run the name poll several times a second. The command and the
dashboard give the same orders and show the same texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vesper.compiler import Compiled
from vesper.engines.version_outcomes import InterfaceChange, interface_changes
from vesper.language.ir.nodes import Input
from vesper.migration.candidates.overview import NameOverview
from vesper.migration.candidates.record import Decision, DecisionKind, decide
from vesper.migration.stores.store import Store
from vesper.values.types import OptionalOf
from vesper.values.vesper_error import VesperError

_DONE: dict[DecisionKind, str] = {
    "promoted": "{candidate} leads {name} now, in place of {lead}; runs under way end on their own definition",
    "withdrawn": "{candidate} is withdrawn: {lead} leads {name}, and nothing follows it",
    "resumed": "{candidate} follows {lead} again; its counts go on",
}


class Refused(VesperError):
    """The decision is not possible; the message contains the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Order:
    """A decision of a person."""

    kind: DecisionKind
    who: str
    why: str
    now_us: int


def give(store: Store, found: NameOverview, order: Order, compile_version: Callable[[str], Compiled | None]) -> str:
    """Store a decision, and return a text about its effect. Raises `Refused` and `StoreError`."""
    started = found.started
    if started is None:
        raise Refused(
            f"no process has run {found.name} with the candidate {found.candidate or '(none)'} yet: nothing to decide"
        )
    if found.decision is not None and found.decision.kind == order.kind:
        raise Refused(f"{started.pair.candidate} is {order.kind} already, by {found.decision.who}")
    if order.kind == "resumed" and found.decision is None:
        raise Refused(f"{started.pair.candidate} follows already")
    if order.kind == "promoted":
        _check_interface(found, compile_version)
    seen = {"compared": found.counts.compared, **found.counts.results}
    decision = Decision(order.kind, started.pair.id, order.who, order.why, order.now_us)
    decide(store, found.name, decision, seen)
    pair = started.pair
    return _DONE[order.kind].format(name=found.name, lead=pair.lead, candidate=pair.candidate)


def _check_interface(found: NameOverview, compile_version: Callable[[str], Compiled | None]) -> None:
    assert found.started is not None
    pair = found.started.pair
    lead, candidate = (compile_version(each) for each in (pair.lead, pair.candidate))
    if lead is None or candidate is None:
        missing = pair.lead if lead is None else pair.candidate
        raise Refused(
            f"there is no valid file of {missing} here, so the interface cannot be checked: name it with --nodes"
        )
    for each, expected in ((lead, pair.lead_hash), (candidate, pair.candidate_hash)):
        if each.semantic_hash != expected:
            raise Refused(
                f"{each.node.node_id} was changed since it was followed: let processes load it, and look at its counts"
            )
    if changes := breaking_changes(lead, candidate):
        raise Refused(
            f"callers of {pair.lead} would notice another interface ({'; '.join(each.text for each in changes)}): "
            f'change the callers, then write `lead = "{pair.candidate}"` into vesper.toml'
        )


def breaking_changes(lead: Compiled, candidate: Compiled) -> list[InterfaceChange]:
    """Return the changes of interface that callers of the lead would notice.

    A candidate may add optional inputs, outputs and fields of errors.
    """
    optional = {each.name for each in candidate.node.inputs if _is_optional(candidate, each)}
    return [
        each
        for each in interface_changes(lead.node, candidate.node)
        if each.before is not None or (each.kind == "input" and each.name not in optional)
    ]


def _is_optional(compiled: Compiled, input_: Input) -> bool:
    is_flagged = input_.name in compiled.node.flagged
    return input_.default is not None or isinstance(input_.type, OptionalOf) or is_flagged
