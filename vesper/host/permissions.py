"""What a node must be granted to run, and whether it is: one answer for the Host, which holds runs to it, and for those
who want to know before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from vesper.config.grants import Grant, Judgement, denied_by, judge
from vesper.host.masking import Whole
from vesper.host.plans import Plans, plans_of
from vesper.language.ir.nodes import Node


def needed(node: Node, plans: Plans) -> dict[str, list[str]]:
    """Every capability that a run may need, with the paths of the requests that need it: of the node's own, and of the
    nodes that it calls. A secret that no step reads may be part of the credentials of a provider; `*` names none."""
    found: dict[str, list[str]] = {}
    for path, plan in plans.requests.items():
        for capability in plan.capabilities:
            found.setdefault(capability, []).append(path)
    for word in node.grants.required:
        if word.startswith("secrets.read.") and word[-1] != "*":
            found.setdefault(word, [])
    return found


def denied_inside(node_id: str, plans: Plans, denial: Callable[[str, str], str | None]) -> dict[str, str]:
    """What is denied to nodes that this one calls. A run has the grants of the node that it is of, and none of those
    inside may use what is denied to itself. `denial` says who denies a capability to a node."""
    found: dict[str, str] = {}
    for plan in plans.requests.values():
        for capability in plan.capabilities if plan.node_id != node_id else ():
            why = denial(capability, plan.node_id)
            if why is not None:
                found[capability] = f"{why} to {plan.node_id}"
    return found


def declared_by(whole: Whole) -> Iterator[tuple[str, set[str]]]:
    """Yield the id of a node, and of each that it calls, with the capabilities that it names or needs."""
    plans = plans_of(whole)
    yield whole.node.node_id, {*whole.node.grants.required, *whole.node.grants.denied, *needed(whole.node, plans)}
    for each in whole.callees:
        yield from declared_by(each)


def judged(node: Node, plans: Plans, grants: Iterable[Grant]) -> dict[str, Judgement]:
    """Whether each capability that a run may need is granted, and why."""
    grants = tuple(grants)
    inside = denied_inside(node.node_id, plans, lambda capability, node_id: denied_by(capability, node_id, grants))
    found: dict[str, Judgement] = {}
    for capability in needed(node, plans):
        own = judge(capability, node.node_id, node.grants.required, node.grants.denied, grants)
        found[capability] = Judgement(False, inside[capability]) if capability in inside else own
    return found
