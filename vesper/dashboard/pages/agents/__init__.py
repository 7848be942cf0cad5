"""Agents: trees with states, incarnations and mailboxes; stop and start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vesper.agents.node_table import node_table
from vesper.dashboard.action import Action, Context, Done, Refused, Role
from vesper.dashboard.page import Page
from vesper.dashboard.pages.journal.actions import open_host
from vesper.dashboard.stores import Topic
from vesper.supervision.mailboxes import Mailboxes
from vesper.supervision.overview import AgentLine, agent_lines, start_agents, stop_agents
from vesper.supervision.trees import UnknownAddress
from vesper.values.model import printable

_LOOK_AGAIN = "Nothing was changed. Load the page again: the tree may have changed."


@dataclass(frozen=True, slots=True)
class Agents:
    """All trees, each supervisor before what is below it."""

    lines: tuple[AgentLine, ...]


def read_agents(context: Context) -> Agents:
    """Read all trees of the journal."""
    return Agents(tuple(agent_lines(context.stores.journal)))


def stop(context: Context, fields: Mapping[str, str]) -> Done:
    """Stop an agent, or all below a supervisor."""
    return _change_agents(context, fields, stop_agents, "stopped")


def start(context: Context, fields: Mapping[str, str]) -> Done:
    """Start an agent, or all below a supervisor, again."""
    return _change_agents(context, fields, start_agents, "started")


def _change_agents(
    context: Context, fields: Mapping[str, str], act: Callable[[Mailboxes, str, str, str], list[str]], done: str
) -> Done:
    address = fields.get("address", "")
    with open_host(context, "use the file that the nodes run with") as host:
        try:
            changed = act(Mailboxes(host, node_table(host)), address, context.caller.name, fields["reason"])
        except UnknownAddress as problem:
            raise Refused(printable(str(problem)), _LOOK_AGAIN) from None
    if not changed:
        raise Refused(f"every agent of {printable(address)} was {done} already", _LOOK_AGAIN)
    return Done(f"{printable(address)}: {len(changed)} {done}.", "/workload/agents")


PAGES = (
    Page(
        name="agents",
        path="/workload/agents",
        title="Agents",
        read=read_agents,
        template="agents/tree.html",
        summary="Trees of agents with states, incarnations, messages that wait and dead letters.",
        topics=frozenset({Topic.JOURNAL}),
    ),
)

ACTIONS = (
    Action(
        name="stop_agent",
        path="/workload/agents/stop",
        role=Role.OPERATOR,
        perform=stop,
        summary="Stops the agent, or all below a supervisor. A message under way ends; others wait for a start.",
    ),
    Action(
        name="start_agent",
        path="/workload/agents/start",
        role=Role.OPERATOR,
        perform=start,
        summary="Starts the agent, or all below a supervisor: new incarnations handle the messages that wait.",
    ),
)
