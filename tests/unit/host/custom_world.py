"""A world of custom effects in which a test decides what happens, and nodes that ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import vesper
from vesper.config.settings import Config, config_from
from vesper.effects.performer import Ask
from vesper.host.host import Host
from vesper.journal.journal import open_journal
from vesper.testing import Sources

STEP = """\
  - step: {name}
    operation: custom
    name: {name}
    effect: {effect_class}
    request: {{text: text}}
    returns: {returns}
"""
NODE = """\
node_id: acting_v1
type: event_handler
intent: Do one thing after the other
inputs:
  event_id: string
  text: string
outputs:
  success:
    last: {returns}
{performance}flow:
{steps}  - operation: return
    success: {{last: {last}}}
security:
  capabilities_required: [{capabilities}]
{security}"""


class Died(BaseException):
    """The process is gone: nothing of it runs any more."""


class World:
    """Performs custom effects by calling what a test says for their names, and notes the paths."""

    def __init__(self, **does: Callable[[Ask], object]) -> None:
        self.does = does
        self.asked: list[str] = []

    def perform(self, ask: Ask) -> object:
        self.asked.append(ask.path)
        return self.does[ask.fixed["name"]](ask) if ask.fixed["name"] in self.does else ask.path

    def probe(self, ask: Ask) -> object:
        raise AssertionError(f"{ask.path} is not of class `probe`")

    def close(self) -> None: ...


def settings(folder: Path, **more: object) -> Config:
    values: Mapping[str, object] = {
        "grants": [{"nodes": ["acting"], "allow": ["effect.*"]}],
        "journal": {"dsn": f"sqlite:{folder / 'journal.db'}"},
        "recovery": {"enabled": False},
        **more,
    }
    return config_from(values, folder)


def host_of(
    config: Config, world: World, owner: str | None = None, lease: float = 60, sources: Sources | None = None
) -> Host:
    dsn = config.dsn(config.journal.dsn)
    journal = open_journal(dsn, owner=owner, lease_seconds=lease, max_body=config.journal.max_body)
    return Host(config, journal=journal, performers={"custom": world}, sources=sources or Sources())


def acting(
    folder: Path,
    host: Host,
    *names: str,
    effect_class: str = "unsafe",
    engine: str = "python",
    performance: str = "",
    security: str = "",
    returns: str = "string",
) -> vesper.Node:
    """A node with a step for each name; `look` is of class `read`."""
    steps = "".join(
        STEP.format(name=name, effect_class="read" if name == "look" else effect_class, returns=returns)
        for name in names
    )
    text = NODE.format(
        steps=steps,
        last=names[-1],
        capabilities=", ".join(f"effect.call.{name}" for name in names),
        performance=f"performance: {performance}\n" if performance else "",
        security=security,
        returns=returns,
    )
    path = folder / "acting_v1.vsp"
    path.write_text(text, encoding="utf-8")
    return vesper.load(path, engine=engine, host=host)


def dies(ask: Ask) -> object:
    raise Died
