"""The capabilities that a node needs to run, and whether each is granted.

The Host enforces this answer, and commands and pages show it before a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from vesper.config.grants import Grant, Judgement, denied_by, judge
from vesper.host.masking import Whole
from vesper.host.plans import Plans, plans_of
from vesper.language.ir.nodes import Node


def needed(node: Node, plans: Plans) -> dict[str, list[str]]:
    """Return every capability that a run may need, with the paths of the requests that need it.

    Requests of called nodes are included. A required secret without a step may be part of a provider's credentials; a
    word that ends in `*` names no secret.
    """
    found: dict[str, list[str]] = {}
    for path, plan in plans.requests.items():
        for capability in plan.capabilities:
            found.setdefault(capability, []).append(path)
    for word in node.grants.required:
        if word.startswith("secrets.read.") and word[-1] != "*":
            found.setdefault(word, [])
    return found


def denied_inside(node_id: str, plans: Plans, denial: Callable[[str, str], str | None]) -> dict[str, str]:
    """Return the capabilities that the configuration denies to called nodes, each with the reason.

    A run has the grants of its outermost node, but a called node may not use a capability that is denied to itself.
    `denial` returns why a capability is denied to a node.
    """
    found: dict[str, str] = {}
    for plan in plans.requests.values():
        for capability in plan.capabilities if plan.node_id != node_id else ():
            why = denial(capability, plan.node_id)
            if why is not None:
                found[capability] = f"{why} to {plan.node_id}"
    return found


def declared_by(whole: Whole) -> Iterator[tuple[str, set[str]]]:
    """Yield a node's id with the capabilities that it names or needs, then those of called nodes."""
    plans = plans_of(whole)
    yield whole.node.node_id, {*whole.node.grants.required, *whole.node.grants.denied, *needed(whole.node, plans)}
    for each in whole.callees:
        yield from declared_by(each)


def judge_capabilities(node: Node, plans: Plans, grants: Iterable[Grant]) -> dict[str, Judgement]:
    """Return whether each capability that a run may need is granted, and why."""
    grants = tuple(grants)
    inside = denied_inside(node.node_id, plans, lambda capability, node_id: denied_by(capability, node_id, grants))
    found: dict[str, Judgement] = {}
    for capability in needed(node, plans):
        own = judge(capability, node.node_id, node.grants.required, node.grants.denied, grants)
        found[capability] = Judgement(False, inside[capability]) if capability in inside else own
    return found
