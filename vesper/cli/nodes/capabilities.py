"""`vesper nodes capabilities`: the capabilities of nodes, judged by the same code as in the Host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from vesper.cli.settings import read_settings
from vesper.config.grants import Grant, Judgement, refuse_void
from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.host.performers import Performers
from vesper.host.permissions import declared_by, judge_capabilities, needed
from vesper.host.plans import MachineConflict, Plans, plans_of
from vesper.language.diagnostics.suggest import did_you_mean_node
from vesper.language.ir.nodes import Node
from vesper.values.model import printable
from vesper.values.node_id import split_node_id

_CREDENTIALS = "credentials of a provider"


@dataclass(frozen=True, slots=True)
class _CallTree:
    """A node with the nodes that it calls."""

    node: Node
    callees: tuple[_CallTree, ...]


@dataclass(frozen=True, slots=True)
class _NodeGrants:
    """The capabilities that a node needs, and whether they are granted."""

    node: Node
    needed: Mapping[str, Sequence[str]]
    judged: Mapping[str, Judgement]
    missing: str | None
    """A granted target that is not configured, with the reason."""


@dataclass(frozen=True, slots=True)
class Report:
    """Capabilities of several nodes."""

    nodes: Mapping[str, _NodeGrants | str]
    """Grants by node id, or why the node cannot be judged."""
    grants: tuple[Grant, ...]
    settings: Path | None
    known: tuple[str, ...]
    """All ids of the repository, also of nodes outside the report."""


def judge_nodes(nodes: Mapping[str, Node | None], wanted: Sequence[str], config: Path | None) -> Report:
    """Judge the named nodes; all without names."""
    settings = read_settings(config)
    found: dict[str, _NodeGrants | str] = {}
    for name in _choose_ids(nodes, wanted):
        node = nodes[name]
        whole = None if node is None else call_tree(node, nodes)
        if whole is None:
            found[name] = "has errors"
            continue
        try:
            plans = plans_of(whole)
            for node_id, declared in declared_by(whole):
                refuse_void(node_id, declared, settings.grants)
        except (MachineConflict, ConfigError) as problem:
            found[name] = f"cannot run: {problem}"
            continue
        judgements = judge_capabilities(whole.node, plans, settings.grants)
        is_granted = settings.path is not None and all(each.is_allowed for each in judgements.values())
        missing = find_unconfigured(settings, plans, name) if is_granted else None
        found[name] = _NodeGrants(whole.node, needed(whole.node, plans), judgements, missing)
    return Report(found, settings.grants, settings.path, tuple(nodes))


def find_unconfigured(settings: Config, plans: Plans, node_id: str) -> str | None:
    """Return why a target of the node is not configured; None where all are."""
    try:
        Performers(replace(settings, path=None, modules=()), {}).check_targets(plans.targets, node_id)
    except ConfigError as problem:
        return str(problem).removeprefix(f"{problem.where}: ")
    return None


def call_tree(node: Node, nodes: Mapping[str, Node | None]) -> _CallTree | None:
    callees = []
    for each in node.calls:
        called = nodes.get(each.node)
        whole = None if called is None else call_tree(called, nodes)
        if whole is None:
            return None
        callees.append(whole)
    return _CallTree(node, tuple(callees))


def _choose_ids(nodes: Mapping[str, Node | None], wanted: Sequence[str]) -> list[str]:
    """Return the ids that the names select: an id, or all versions of a name."""
    if not wanted:
        return list(nodes)
    chosen: dict[str, None] = {}
    for name in wanted:
        found = [each for each in nodes if name in _names(each)]
        if not found:
            hint = did_you_mean_node(name, sorted({every for each in nodes for every in _names(each)}))
            raise click.UsageError(f"no node `{printable(name[:80])}`" + (f"; {hint}" if hint else ""))
        chosen |= dict.fromkeys(found)
    return list(chosen)


def _names(node_id: str) -> tuple[str, ...]:
    parts = split_node_id(node_id)
    return (node_id,) if parts is None else (node_id, parts[0])


def report_json(report: Report) -> dict[str, Any]:
    return {
        name: None
        if isinstance(may, str)
        else {
            "required": {capability: list(map(_step_name, steps)) for capability, steps in may.needed.items()},
            "declared": list(may.node.grants.required),
            "denied": list(may.node.grants.denied),
            "granted": {each: {"allowed": one.is_allowed, "why": one.why} for each, one in may.judged.items()},
            "missing": may.missing,
        }
        for name, may in report.nodes.items()
    }


def report_lines(report: Report) -> Iterator[str]:
    for name, may in report.nodes.items():
        state = may if isinstance(may, str) else "" if may.needed else "none"
        yield f"{printable(name)}  {state}".rstrip()
        if isinstance(may, str):
            continue
        for capability, steps in may.needed.items():
            yield f"  {capability}  {', '.join(map(_step_name, steps)) or _CREDENTIALS}"
            if report.settings is not None:
                one = may.judged[capability]
                yield f"    {'' if one.is_allowed else 'no: '}{one.why}"
        if may.missing is not None:
            yield f"  not configured: {may.missing}"
        wider = [word for word in may.node.grants.required if word not in may.needed]
        if wider:
            yield f"  also declares: {', '.join(wider)}"
        if may.node.grants.denied:
            yield f"  denies: {', '.join(may.node.grants.denied)}"
    if report.settings is None:
        yield "there is no vesper.toml from here upwards: nothing is granted"
        return
    yield f"grants of {report.settings}"
    for grant in report.grants:
        if not any(map(grant.is_for, report.known)):
            yield _unused_note(grant, report.known)


def _unused_note(grant: Grant, known: Sequence[str]) -> str:
    """Describe a grant for an unknown node, often a misspelt name."""
    names = ", ".join(f"`{printable(each)}`" for each in grant.nodes) or "no node"
    every = sorted({name for each in known for name in _names(each)})
    hints = [hint for each in grant.nodes if (hint := did_you_mean_node(each, every))]
    return f"note: {grant.where} is for {names}, which does not exist here" + (f"; {hints[0]}" if hints else "")


def _step_name(path: str) -> str:
    """Return a path without the underscores of unnamed steps."""
    return "/".join(each.lstrip("_") for each in path.split("/"))
