"""MCP servers whose tools nodes may call."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from vesper.effects.commands.settings import Confinement
from vesper.effects.settings import ConfigError, Table

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*", re.ASCII)
_PIN: Final = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class McpSettings:
    """`[mcp.NAME]`: a command, which runs in the sandbox, or a URL."""

    name: str
    command: tuple[str, ...]
    url: str | None
    token_secret: str | None
    """Secret that is sent as a bearer token."""
    tools: str | None
    """Pin of the tool list; without one no tool is called."""
    folder: str
    """Working folder of the command."""
    timeout: float
    max_result: int
    """Bytes of a message of the server."""
    confinement: Confinement

    @classmethod
    def from_table(cls, name: str, table: Table, base: Path | None = None) -> McpSettings:
        if not _NAME.fullmatch(name):
            raise ConfigError(table.where, "the name of an MCP server is lower-case letters, digits, `_` and `-`")
        command = table.texts("command", ())
        url = table.text("url") if "url" in table else None
        found = cls(
            name,
            command,
            url,
            table.text("token_secret") if "token_secret" in table else None,
            table.text("tools") if "tools" in table else None,
            str((base or Path("/")) / table.text("folder", ".")),
            table.seconds("timeout", 30.0),
            table.size("max_result", 256 << 10),
            Confinement.from_table(table, base),
        )
        table.done()
        found._check(table)
        return found

    def _check(self, table: Table) -> None:
        if bool(self.command) == (self.url is not None):
            raise ConfigError(table.where, "either `command` or `url` is expected")
        if self.command and not (Path(self.command[0]).is_absolute() and os.access(self.command[0], os.X_OK)):
            raise table.error("command", f"the absolute path of a program is expected, not `{self.command[0]}`")
        if self.url is not None and urlsplit(self.url).scheme not in ("http", "https"):
            raise table.error("url", "an `http://` or `https://` URL is expected")
        if self.token_secret is not None and self.url is None:
            raise table.error("token_secret", "a command gets no token: a secret does not enter the sandbox")
        if self.tools is not None and not _PIN.fullmatch(self.tools):
            raise table.error(
                "tools", "`sha256:` and 64 hexadecimal digits are expected; `vesper mcp --pins` prints them"
            )
        if not 1 << 10 <= self.max_result <= 4 << 20:
            raise table.error("max_result", "1 KiB at least and 4 MiB at most")
        if not 0 < self.timeout <= 3600:
            raise table.error("timeout", "a server has more than nothing and at most an hour")
