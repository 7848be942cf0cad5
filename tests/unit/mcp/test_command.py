"""`vesper mcp` as a process: standard input, streamable HTTP with API keys, pins."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner, Result
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.support.mcp.settings import server_table
from tests.support.nodes import ROOT
from tests.unit.mcp.test_node_server import NOTE, PRICE
from vesper.cli.mcp.command import command

KEY = "a-key-of-sixteen-characters"
VESPER = (sys.executable, "-P", "-m", "vesper")
SCOPED = """
[[serve.keys]]
name   = "assistant"
secret = "assistant_key"
scopes = ["price"]

[serve.scopes]
"price_*" = ["price"]
"note_*"  = ["notes"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "price_v1.vsp").write_text(PRICE)
    (tmp_path / "nodes" / "note_v1.vsp").write_text(NOTE)
    (tmp_path / "vesper.toml").write_text("")
    return tmp_path


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "VESPER_SECRET_ASSISTANT_KEY": KEY}


def test_a_client_over_standard_input(folder: Path) -> None:
    async def talk() -> None:
        launch = StdioServerParameters(
            command=sys.executable, args=[*VESPER[1:], "mcp", "price_v1"], env=environment(), cwd=folder
        )
        async with Client(launch) as client:
            assert [each.name for each in (await client.list_tools()).tools] == ["price_v1"]
            result = await client.call_tool("price_v1", {"lines": [{"quantity": 2, "price": "1.5"}]})
            assert result.structured_content == {"total": "3.000"}

    asyncio.run(talk())


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """Serve over HTTP on a free port of this machine."""
    launch = [*VESPER, "mcp", "--http", "0", *options]
    process = subprocess.Popen(launch, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if (found := re.search(r"http://\S+/mcp", line)) is not None:
                yield found[0]
                return
        pytest.fail("".join(lines))
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()


def test_http_callers_need_a_key_and_its_scopes(folder: Path) -> None:
    (folder / "vesper.toml").write_text(SCOPED)

    async def talk(url: str) -> None:
        async with httpx2.AsyncClient() as nobody:
            assert (await nobody.post(url, json={})).status_code == 401
            assert (await nobody.post(url, json={}, headers={"authorization": "Bearer wrong"})).status_code == 401
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            assert [each.name for each in (await client.list_tools()).tools] == ["price_v1"]
            assert (await client.call_tool("price_v1", {"lines": []})).is_error
            refused = await client.call_tool("note_v1", {"event_id": "e", "note": "n"})
            assert "lacks the scope notes" in str(refused.content)

    with serving(folder) as url:
        asyncio.run(talk(url))


def run(folder: Path, *options: str) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(command, options)


def test_a_public_address_needs_keys(folder: Path) -> None:
    found = run(folder, "--http", "0.0.0.0:0")
    assert found.exit_code == 1
    assert "[[serve.keys]]" in found.stderr


@pytest.mark.parametrize(
    "options, problem",
    [
        (("--grants",), "--grants belongs to --author"),
        (("--author", "price_v1"), "omit NODES"),
        (("--pins", "--author"), "use it alone"),
        (("--http", "nowhere"), "write PORT or HOST:PORT"),
        (("absent_v1",), "no node `absent_v1`"),
        (("--pins",), "no server is configured"),
    ],
)
def test_options_that_make_no_sense(folder: Path, options: tuple[str, ...], problem: str) -> None:
    found = run(folder, *options)
    assert found.exit_code != 0
    assert problem in found.stderr


def test_pins_are_printed_with_the_tools(folder: Path) -> None:
    table = "\n".join(f"{name} = {json.dumps(value)}" for name, value in server_table().items())
    (folder / "vesper.toml").write_text(f'[mcp.tests]\n{table}\n\n[mcp.gone]\ncommand = ["/bin/false"]\n')
    found = run(folder, "--pins")
    assert found.exit_code == 1
    assert found.stdout.startswith("[mcp.gone]\n# `gone` cannot be used: ")
    line = r'^tools = "(sha256:[0-9a-f]{64})"  # not configured yet\n#   echo: echo\.\n'
    pin = re.search(line, found.stdout, re.MULTILINE)
    assert pin is not None
    for configured, state in ((pin[1], "as configured"), (f"sha256:{'0' * 64}", "CHANGED since sha256:000")):
        (folder / "vesper.toml").write_text(f'[mcp.tests]\n{table}\ntools = "{configured}"\n')
        found = run(folder, "--pins")
        assert (found.exit_code, state in found.stdout) == (0, True)
