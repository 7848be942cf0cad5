"""Facts about every request of a node, read from the IR once, when a node is prepared.

A request is identified by its path without iterations: `pay[1]/charge[2]` is the step `charge` of the node that the
step `pay` calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from vesper.cache.node_facts import NOTHING
from vesper.compiler import Compiled
from vesper.host.masking import Masks, Whole, is_sensitive
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import Block, Policy, handlers_of, own_blocks
from vesper.policies.budget import Budget, budgets_of
from vesper.policies.settings import effective
from vesper.values.generated.effects import EFFECTS
from vesper.values.types import Record, Type
from vesper.values.vesper_error import VesperError

_ITERATION = re.compile(r"\[[0-9]+\]")


@dataclass(frozen=True, slots=True)
class Plan:
    """One request of a node, or of a node that it calls."""

    node_id: str
    effect: str
    target: str
    """Target of the request: a provider, a database, an effect of the application's own."""
    effect_class: str
    gives: Type
    policy: Policy
    """Of the step, over that of its node."""
    limits_name: str
    """What a breaker, a rate limit or a limit of concurrency counts under: the node and the step's target."""
    capabilities: tuple[str, ...]
    in_handler: bool
    """True where it stands in an error handler: what it does must be tried even where the time is up."""
    is_shared: bool
    """True where it has limits that runs share."""
    is_once: bool
    """True where the request is a single attempt without admission."""
    timeout: float | None
    """Seconds of one attempt."""
    fixed: Mapping[str, str]
    """What the node says of it, whatever it is called with."""
    is_sensitive: bool = False
    """True where its arguments, its key or its answer hold sensitive data."""
    parameters: Mapping[str, Type] = field(default_factory=dict)
    """The types of the parameters of its SQL."""


@dataclass(frozen=True, slots=True)
class Plans:
    """All requests of a node by path, and the facts that follow from them."""

    requests: dict[str, Plan]
    writes: bool
    """True where a request changes something outside."""
    machines: dict[str, str]
    """The initial state of each machine."""
    targets: frozenset[tuple[str, str]]
    """Each effect with what it is asked of: a provider, a database, a topic."""
    is_sensitive: bool
    """True where the node, or one that it calls, has sensitive inputs or answers."""

    def of(self, path: str) -> Plan:
        found = self.requests.get(path)
        if found is not None:
            return found
        # In a loop. What a called node asks for may have iterations in the middle, too.
        return self.requests[_ITERATION.sub("", path) if "/" in path else path.partition("[")[0]]


class MachineConflict(VesperError, ValueError):
    """Two nodes declare different initial states of one machine."""


class RefusedSql(VesperError, ValueError):
    """A compiled node contains SQL that the checker refuses: an older version compiled it, or it was changed since."""


def plans_of(compiled: Whole) -> Plans:
    """Return the plans of a node and of the nodes that it calls."""
    requests: dict[str, Plan] = {}
    machines: dict[str, str] = {}
    targets: set[tuple[str, str]] = set()
    _add_requests(compiled, "", Masks(compiled), False, requests, machines, targets, ())
    writes = any(plan.effect_class != "read" for plan in requests.values())
    return Plans(requests, writes, machines, frozenset(targets), is_sensitive(compiled))


def _add_requests(
    compiled: Whole,
    prefix: str,
    masks: Masks,
    in_handler: bool,
    requests: dict[str, Plan],
    machines: dict[str, str],
    targets: set[tuple[str, str]],
    around: tuple[Budget, ...],
) -> None:
    """Add the requests of a node at a prefix. `around` are the budgets of the calls that lead to it."""
    node, depth = compiled.node, prefix.count("/")
    for machine in node.machines:
        before = machines.setdefault(machine.name, machine.initial)
        if before != machine.initial:
            raise MachineConflict(
                f"{node.node_id} starts the machine `{machine.name}` in `{machine.initial}`, "
                f"and a node that is used with it starts it in `{before}`"
            )
    callees = {each.node.node_id: each for each in compiled.callees}
    # Parsing SQL takes longer than the rest of a start: the cache of loaded nodes has the result.
    facts = compiled.kept if isinstance(compiled, Compiled) else NOTHING
    for statement, handled in _statements(node.body, in_handler):
        if isinstance(statement, ir.Request):
            named = partial(capabilities_of, statement.effect, tuple(statement.fixed.items()))
            policy = _with_budgets(effective(node.grants.policy, statement.policy), around, depth)
            targets.add((statement.effect, _target(statement)))
            requests[prefix + statement.name] = Plan(
                node.node_id,
                statement.effect,
                _target(statement),
                statement.effect_class,
                statement.result.type,
                policy,
                f"{node.node_id} {statement.effect} {_target(statement)}",
                facts.fact(f"host.capabilities.{statement.name}", named),
                handled,
                *_limit_facts(policy),
                statement.fixed,
                masks.request(prefix + statement.name).is_sensitive,
                _parameters(statement),
            )
        elif isinstance(statement, ir.CallNode):
            inner = (*budgets_of(node.grants.policy), *statement.budgets)
            below = (*around, *(each.at_depth(depth) for each in inner))
            called = callees[statement.node]
            _add_requests(called, f"{prefix}{statement.name}/", masks, handled, requests, machines, targets, below)


def _statements(block: Block, in_handler: bool) -> Iterator[tuple[ir.Statement, bool]]:
    """Yield every statement, with whether it is inside of a handler."""
    for statement in block:
        yield statement, in_handler
        handlers = handlers_of(statement)
        of_handlers = [handler.body for handler in handlers]
        for inner in own_blocks(statement):
            yield from _statements(inner, in_handler)
        for body in of_handlers:
            yield from _statements(body, True)


def _with_budgets(policy: Policy, around: tuple[Budget, ...], depth: int) -> Policy:
    """Return a policy with the budgets around its node before its own."""
    budgets = (*around, *(each.at_depth(depth) for each in budgets_of(policy)))
    return {**policy, "budgets": budgets} if budgets else policy


def _limit_facts(policy: Policy) -> tuple[bool, bool, float | None]:
    is_shared = any(name in policy for name in ("breaker_failures", "rate_limit", "concurrency"))
    timeout = policy.get("timeout_us")
    assert timeout is None or isinstance(timeout, int)  # the checker reads nothing else
    is_once = not is_shared and "attempts" not in policy and "budgets" not in policy
    return is_shared, is_once, None if timeout is None else timeout / 1_000_000


def _parameters(request: ir.Request) -> dict[str, Type]:
    bound = dict(request.arguments).get("bind")
    return dict(bound.type.fields) if bound is not None and isinstance(bound.type, Record) else {}


def _target(request: ir.Request) -> str:
    """Return the target of a request, the first fixed field of its declaration.

    The order of `fixed` may differ in a node that was read from its IR.
    """
    names = EFFECTS[request.effect].fixed
    return request.fixed[names[0]] if names else ""


_capabilities: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[str, ...]] = {}


def capabilities_of(effect: str, fixed: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the capabilities of a request: one, or for SQL one for every table and every impure function."""
    found = _capabilities.get((effect, fixed))
    if found is None:
        found = _capabilities[effect, fixed] = tuple(_name_capabilities(effect, dict(fixed)))
    return found


def _name_capabilities(effect: str, fixed: dict[str, str]) -> Iterator[str]:
    pattern = EFFECTS[effect].capability
    if "{table}" not in pattern:
        yield pattern.format(**fixed)
        return
    from vesper.language.check.flow.sql import SqlProblem, read_sql

    try:
        yield from read_sql(fixed["sql"]).capabilities
    except SqlProblem as problem:
        raise RefusedSql(f"the SQL of a `{effect}` {problem}; check the node again with this version") from None
