"""Pins of the MCP servers that nodes may call: the tools that each lists now, beside the configured pin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vesper.effects.mcp.performer import McpPerformer
from vesper.effects.performer import EffectFailed
from vesper.effects.secrets.settings import SecretSettings
from vesper.effects.secrets.store import open_secrets
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.config.settings import Config


@dataclass(frozen=True, slots=True)
class Pin:
    """The tools of one server, or why they cannot be read."""

    server: str
    configured: str | None
    found: str = ""
    tools: tuple[tuple[str, str], ...] = ()
    """Names and descriptions."""
    problem: str | None = None


def read_pins(config: Config) -> Iterator[Pin]:
    """Ask every configured server for its tools."""
    secrets = open_secrets(config.parts.secrets or SecretSettings("environment"))
    performer = McpPerformer(config.parts.mcp, secrets.text)
    try:
        for name, settings in sorted(config.parts.mcp.items()):
            try:
                found, tools = performer.list_tools(name)
            except EffectFailed as failure:
                yield Pin(name, settings.tools, problem=secrets.redact(failure.message))
                continue
            yield Pin(name, settings.tools, found, tuple((each.name, each.description or "") for each in tools))
    finally:
        performer.close()


def pin_lines(pin: Pin) -> list[str]:
    """Return a table to paste into `vesper.toml`, with the tools as comments."""
    head = f"[mcp.{pin.server}]"
    if pin.problem is not None:
        return [head, *(f"# {printable(line)}" for line in pin.problem.splitlines()), ""]
    state = "as configured" if pin.found == pin.configured else "not configured yet"
    if pin.configured not in (None, pin.found):
        state = f"CHANGED since {pin.configured}: read the tools before you paste it"
    lines = [f"#   {printable(name)}: {printable(about)}".rstrip(": ") for name, about in pin.tools]
    return [head, f'tools = "{pin.found}"  # {state}', *lines, ""]
