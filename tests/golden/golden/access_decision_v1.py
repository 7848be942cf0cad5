# AUTO-GENERATED - DO NOT EDIT
# access_decision_v1, from nodes/access/access_decision_v1.vsp
# semantic hash 126cfceab31a5512cc0aad235d658ba7d542f13dce1bb562d3c1fcb114e46e17
"""Decide whether a user may act on a document, deny winning over allow, and say which rule
decided."""

from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import concat as array_concat, first as array_first
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_TEXT,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    new_objects,
    read_inputs,
    read_member,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
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


INPUTS: Final = Inputs(
    {
        "roles": "set<string>",
        "action": "enum[read, write, share, delete]",
        "resource": "string",
        "owner": "optional<string>",
        "user": "string",
        "rules": "array<{name: string, effect: enum[allow, deny], roles: set<string>, actions: set<enum[read, write, share, delete]>, prefix: optional<string>}>",
    },
    {},
)
RUN: Final = undecorated(access_decision_v1)


def read_rule(given: Any) -> Rule:
    """What is a Rule already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 4 + ("prefix" in given):
        raise NotPlain
    name_ = given["name"]
    if type(name_) is not str or not (is_ascii(name_) or is_text(name_)) or len(name_) > MAX_TEXT:
        raise NotPlain
    effect = read_member(given["effect"], ("allow", "deny"))
    roles = given["roles"]
    actions = given["actions"]
    prefix = given["prefix"] if "prefix" in given else None
    if prefix is not None:
        if (
            type(prefix) is not str
            or not (is_ascii(prefix) or is_text(prefix))
            or len(prefix) > MAX_TEXT
        ):
            raise NotPlain
    return {
        "name": name_,
        "effect": effect,
        "roles": read_value("set<string>", roles),
        "actions": read_value("set<enum[read, write, share, delete]>", actions),
        "prefix": prefix,
    }


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 5 + ("owner" in inputs):
            raise NotPlain
        roles = inputs["roles"]
        roles = read_value("set<string>", roles)
        action = inputs["action"]
        if type(action) is not str or action not in {"read", "write", "share", "delete"}:
            raise NotPlain
        resource = inputs["resource"]
        if (
            type(resource) is not str
            or not (is_ascii(resource) or is_text(resource))
            or len(resource) > MAX_TEXT
        ):
            raise NotPlain
        owner = inputs["owner"] if "owner" in inputs else None
        if owner is not None:
            if (
                type(owner) is not str
                or not (is_ascii(owner) or is_text(owner))
                or len(owner) > MAX_TEXT
            ):
                raise NotPlain
        user = inputs["user"]
        if type(user) is not str or not (is_ascii(user) or is_text(user)) or len(user) > MAX_TEXT:
            raise NotPlain
        rules = inputs["rules"]
        if type(rules) is not list or len(rules) > MAX_ENTRIES:
            raise NotPlain
        rules = [read_rule(item) for item in rules]
    except NOT_PLAIN:
        roles, action, resource, owner, user, rules = read_inputs(INPUTS, inputs)
    return new_objects(
        RUN(roles=roles, action=action, resource=resource, owner=owner, user=user, rules=rules)
    )


SOURCE: Final = Source(
    "nodes/access/access_decision_v1.vsp",
    lines={
        60: 17, 81: 39, 102: 30,
    },
    clauses={
        "constraint": [
            "length(resource) > 0",
        ],
        "postcondition": [
            "decision == deny OR decided_by IS NOT NULL",
        ],
    },
)  # fmt: skip
