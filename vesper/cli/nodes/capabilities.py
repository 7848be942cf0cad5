"""`vesper nodes capabilities`: who may do what here, and why. It asks what the Host asks, so that the two never say
different things."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from vesper.cli.settings import read_settings
from vesper.config.grants import Grant, Judgement
from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.host.performers import Performers
from vesper.host.permissions import judged, needed
from vesper.host.plans import MachineConflict, Plans, plans_of
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir.nodes import Node
from vesper.values.model import printable
from vesper.values.node_id import split_node_id

_CREDENTIALS = "no step: the credentials of a provider"


@dataclass(frozen=True, slots=True)
class _Whole:
    """A node with those that it calls."""

    node: Node
    callees: tuple[_Whole, ...]


@dataclass(frozen=True, slots=True)
class _May:
    """What a node needs, and what it is granted."""

    node: Node
    needed: Mapping[str, Sequence[str]]
    judged: Mapping[str, Judgement]
    missing: str | None
    """What is granted and cannot be asked all the same, because nothing says where it is."""


@dataclass(frozen=True, slots=True)
class Report:
    """What there is to say of some nodes."""

    nodes: Mapping[str, _May | str]
    """Or why nothing can be said of it."""
    grants: tuple[Grant, ...]
    settings: Path | None
    known: tuple[str, ...]
    """Every id that there is, also of nodes that nobody asked about."""


def report(nodes: Mapping[str, Node | None], wanted: Sequence[str], config: Path | None) -> Report:
    """Judges the nodes that are wanted, all where none is named."""
    settings = read_settings(config)
    found: dict[str, _May | str] = {}
    for name in _chosen(nodes, wanted):
        node = nodes[name]
        whole = None if node is None else _whole(node, nodes)
        if whole is None:
            found[name] = "has errors"
            continue
        try:
            plans = plans_of(whole)
        except MachineConflict as problem:
            found[name] = f"cannot run: {problem}"
            continue
        said = judged(whole.node, plans, settings.grants)
        is_granted = settings.path is not None and all(each.is_allowed for each in said.values())
        missing = _missing(settings, plans, name) if is_granted else None
        found[name] = _May(whole.node, needed(whole.node, plans), said, missing)
    return Report(found, settings.grants, settings.path, tuple(nodes))


def _missing(settings: Config, plans: Plans, node_id: str) -> str | None:
    try:
        Performers(replace(settings, path=None, modules=()), {}).check_targets(plans.targets, node_id)
    except ConfigError as problem:
        return str(problem).removeprefix(f"{problem.where}: ")
    return None


def _whole(node: Node, nodes: Mapping[str, Node | None]) -> _Whole | None:
    callees = []
    for each in node.calls:
        called = nodes.get(each.node)
        whole = None if called is None else _whole(called, nodes)
        if whole is None:
            return None
        callees.append(whole)
    return _Whole(node, tuple(callees))


def _chosen(nodes: Mapping[str, Node | None], wanted: Sequence[str]) -> list[str]:
    """The ids that are meant: an id, or all versions of a name."""
    if not wanted:
        return list(nodes)
    chosen: dict[str, None] = {}
    for name in wanted:
        found = [each for each in nodes if name in _names(each)]
        if not found:
            hint = did_you_mean(name, sorted({every for each in nodes for every in _names(each)}))
            raise click.UsageError(f"no node `{printable(name[:80])}`" + (f"; {hint}" if hint else ""))
        chosen |= dict.fromkeys(found)
    return list(chosen)


def _names(node_id: str) -> tuple[str, ...]:
    parts = split_node_id(node_id)
    return (node_id,) if parts is None else (node_id, parts[0])


def as_json(said: Report) -> dict[str, Any]:
    return {
        name: None
        if isinstance(may, str)
        else {
            "required": {capability: list(map(_step, steps)) for capability, steps in may.needed.items()},
            "declared": list(may.node.grants.required),
            "denied": list(may.node.grants.denied),
            "granted": {each: {"allowed": one.is_allowed, "why": one.why} for each, one in may.judged.items()},
            "missing": may.missing,
        }
        for name, may in said.nodes.items()
    }


def lines(said: Report) -> Iterator[str]:
    for name, may in said.nodes.items():
        state = may if isinstance(may, str) else "" if may.needed else "none"
        yield f"{printable(name)}  {state}".rstrip()
        if isinstance(may, str):
            continue
        for capability, steps in may.needed.items():
            yield f"  {capability}  {', '.join(map(_step, steps)) or _CREDENTIALS}"
            if said.settings is not None:
                one = may.judged[capability]
                yield f"    {'' if one.is_allowed else 'no: '}{one.why}"
        if may.missing is not None:
            yield f"  not configured: {may.missing}"
        wider = [word for word in may.node.grants.required if word not in may.needed]
        if wider:
            yield f"  asks for: {', '.join(wider)}"
        if may.node.grants.denied:
            yield f"  never: {', '.join(may.node.grants.denied)}"
    if said.settings is None:
        yield "there is no vesper.toml from here upwards: nothing is granted"
        return
    yield f"grants of {said.settings}"
    for grant in said.grants:
        if not any(map(grant.is_for, said.known)):
            yield _idle(grant, said.known)


def _idle(grant: Grant, known: Sequence[str]) -> str:
    """A grant that is for nobody is a name that was misspelt, or a node that is elsewhere."""
    names = ", ".join(f"`{printable(each)}`" for each in grant.nodes) or "nobody"
    every = sorted({name for each in known for name in _names(each)})
    hints = [hint for each in grant.nodes if (hint := did_you_mean(each, every))]
    return f"note: {grant.where} is for {names}, and there is no such node here" + (f"; {hints[0]}" if hints else "")


def _step(path: str) -> str:
    """A path as people know it: a step without a name of its own begins with an underscore."""
    return "/".join(each.lstrip("_") for each in path.split("/"))
