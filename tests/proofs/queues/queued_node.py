"""A node in a queue whose one effect is a function of the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import vesper
from vesper.config.settings import config_from
from vesper.effects.performer import Ask
from vesper.host.host import Host

NODE = """\
node_id: {name}_v1
type: event_handler
intent: Do a piece of work of a merchant
inputs:
  event_id: string
  merchant: string
outputs:
  success: {{text: string}}
flow:
  - step: act
    operation: custom
    name: act
    request: {{event_id: event_id, merchant: merchant}}
    returns: string
    effect: {effect_class}
  - operation: return
    success: {{text: act}}
queue: {queue}
security:
  capabilities_required: [effect.call.act]
"""


class Acting:
    """Performs the effect of the node by calling `act` with the id and the merchant."""

    def __init__(self, act: Callable[[str, str], str]) -> None:
        self._act = act

    def perform(self, ask: Ask) -> object:
        request = ask.arguments["request"]
        assert isinstance(request, dict)
        return self._act(str(request["event_id"]), str(request["merchant"]))

    def probe(self, ask: Ask) -> object:
        raise AssertionError(f"{ask.path} is not of class `probe`")

    def close(self) -> None: ...


def host_in(folder: Path, act: Callable[[str, str], str], dsn: str | None = None, **tables: dict[str, Any]) -> Host:
    """Return a Host whose workers poll quickly."""
    queues = {"default": {"poll": "10ms"}, **tables.pop("queues", {})}
    values = {
        "grants": [{"nodes": ["*"], "allow": ["*"]}],
        "journal": {"dsn": dsn or f"sqlite:{folder / 'journal.db'}"},
        "recovery": {"enabled": False},
        "queues": queues,
        **tables,
    }
    return Host(config_from(values, folder), performers={"custom": Acting(act)})


def load(folder: Path, host: Host, queue: str = "{}", name: str = "work", effect_class: str = "keyed") -> vesper.Node:
    """Load the node with this `queue`."""
    path = folder / f"{name}_v1.vsp"
    path.write_text(NODE.format(queue=queue, name=name, effect_class=effect_class), encoding="utf-8")
    return vesper.load(path, engine="python", host=host)
