"""Settings of the MCP server of tests."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from vesper.effects.mcp.performer import McpPerformer
from vesper.effects.mcp.settings import McpSettings
from vesper.effects.settings import Table

SERVER = Path(__file__).with_name("server.py")


def server_table(fault: str = "", **more: object) -> dict[str, object]:
    """Return `[mcp.NAME]` for the server of tests, which runs in the sandbox."""
    folders = {sys.base_prefix, sys.prefix, sysconfig.get_paths()["purelib"], str(SERVER.parent)}
    launch = [sys.executable, str(SERVER), *([fault] if fault else [])]
    return {"command": launch, "read": sorted(folders), "max_result": "64 KiB", **more}


def settings_of(fault: str = "", **more: object) -> McpSettings:
    return McpSettings.from_table("tests", Table("mcp.tests", server_table(fault, **more)))


def pinned(fault: str = "", **more: object) -> McpSettings:
    """Return settings with the pin of the tools that the server lists at first."""
    open_ = McpPerformer({"tests": settings_of(fault, **more)}, str)
    try:
        pin, _ = open_.pin("tests")
    finally:
        open_.close()
    return settings_of(fault, tools=pin, **more)
