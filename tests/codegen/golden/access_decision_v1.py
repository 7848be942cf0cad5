# AUTO-GENERATED - DO NOT EDIT
# access_decision_v1, from nodes/access/access_decision_v1.vsp
# semantic hash 126cfceab31a5512cc0aad235d658ba7d542f13dce1bb562d3c1fcb114e46e17
"""Decide whether a user may act on a document, deny winning over allow, and say which rule
decided."""

from typing import Literal, TypedDict

from vesper.kernels.array import concat as array_concat, first as array_first
from vesper.kernels.decimal import exact_decimals
from vesper.kernels.raised import ContractBroken
from vesper.kernels.set import is_disjoint as set_is_disjoint
from vesper.kernels.text import starts_with as text_starts_with


class Rule(TypedDict):
    name: str
    effect: Literal["allow", "deny"]
    roles: frozenset[str]
    actions: frozenset[Literal["read", "write", "share", "delete"]]
    prefix: str | None


class Success(TypedDict):
    decision: Literal["allow", "deny"]
    decided_by: str | None
    matching: list[str]


@exact_decimals
def access_decision_v1(
    *,
    roles: frozenset[str],
    action: Literal["read", "write", "share", "delete"],
    resource: str,
    owner: str | None = None,
    user: str,
    rules: list[Rule],
) -> Success:
    """Decide whether a user may act on a document, deny winning over allow, and say which rule
    decided."""

    # constraint, line 17: length(resource) > 0
    if not len(resource) > 0:
        raise ContractBroken("constraint", 0, {"resource": resource})

    # step applies, line 35
    applies: list[Rule] = [
        rule
        for rule in rules
        if action in rule["actions"]
        and not set_is_disjoint(rule["roles"], roles)
        and (rule["prefix"] is None or text_starts_with(resource, rule["prefix"]))
    ]

    # step denies, line 36
    denies = [rule["name"] for rule in applies if rule["effect"] == "deny"]

    # step allows, line 37
    allows = [rule["name"] for rule in applies if rule["effect"] == "allow"]

    # step is_owner, line 38
    is_owner = owner is not None and owner == user

    # step matching, line 39
    matching = array_concat(denies, allows)

    # step decided_by, line 41
    if len(denies) > 0:
        decided_by = array_first(denies)
    elif is_owner:
        decided_by = "owner"
    else:
        decided_by = array_first(allows)

    # step decision, line 48
    decision: Literal["allow", "deny"]
    if len(denies) > 0:
        decision = "deny"
    elif is_owner or len(allows) > 0:
        decision = "allow"
    else:
        decision = "deny"

    # postcondition, line 30: decision == deny OR decided_by IS NOT NULL
    if not (decision == "deny" or decided_by is not None):
        raise ContractBroken("postcondition", 0, {"decision": decision, "decided_by": decided_by})

    return {"decision": decision, "decided_by": decided_by, "matching": matching}
