"""Nodes of agents whose one effect is a function of the test, and a Host that polls quickly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import vesper
from vesper.config.settings import config_from
from vesper.effects.custom.performer import CustomPerformer
from vesper.effects.custom.registry import REGISTRY
from vesper.effects.performer import Ask, EffectFailed
from vesper.host.host import Host

WORKER = """\
node_id: {name}_v1
type: event_handler
intent: Handle a message of an agent
inputs:
  event_id: string
  agent_self: string
  agent_sender: string
outputs:
  success: {{text: string}}
flow:
  - step: act
    operation: custom
    name: act
    request: {{event_id: event_id, agent: agent_self, sender: agent_sender}}
    returns: string
    effect: keyed
    key: event_id
  - operation: return
    success: {{text: act}}
security:
  capabilities_required: [effect.call.act]
"""

Act = Callable[[str, str, str], str]


class Acting(CustomPerformer):
    """Performs `act` by calling a function with the id, the agent and the sender; other effects as registered."""

    def __init__(self, act: Act) -> None:
        super().__init__(registry=REGISTRY)
        self._act = act

    def perform(self, ask: Ask) -> object:
        if ask.fixed["name"] != "act":
            return super().perform(ask)
        request = ask.arguments["request"]
        assert isinstance(request, dict)
        return self._act(str(request["event_id"]), str(request["agent"]), str(request["sender"]))


def crash(why: str = "the provider is away") -> str:
    raise EffectFailed("unavailable", why, may_have_happened=False)


def host_in(folder: Path, act: Act, **tables: Any) -> Host:
    """Return a Host with a journal in the folder."""
    values = {
        "grants": [{"nodes": ["*"], "allow": ["*"]}],
        "journal": {"dsn": f"sqlite:{folder / 'journal.db'}"},
        "queues": {"agents": {"poll": "10ms"}},
        **tables,
    }
    return Host(config_from(values, folder), performers={"custom": Acting(act)})


def load(folder: Path, host: Host, name: str = "worker", text: str = WORKER) -> vesper.Node:
    path = folder / f"{name}_v1.vsp"
    path.write_text(text.format(name=name), encoding="utf-8")
    return vesper.load(path, engine="python", host=host)
