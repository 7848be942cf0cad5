"""The page about serving, run as written: its first command starts a server, the others send requests to it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

import pytest

from tests.support.console import ROOT, check_printed, parse_session
from vesper.config.serve import ANSWER_PATH
from vesper.config.settings import config_from

PAGE = (ROOT / "docs" / "how-to" / "serve-nodes.md").read_text(encoding="utf-8")


def test_the_session(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```console served\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    serve, *requests = parse_session(block)
    (tmp_path / "nodes").mkdir()
    shutil.copy(ROOT / "nodes" / "payments" / "payment_decision_v1.vsp", tmp_path / "nodes")
    port = re.search(r"--port (\d+)", serve.text)
    assert port is not None
    command = [sys.executable, "-m", *shlex.split(serve.text.replace(port[0], "--port 0"))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        line = next((line.strip() for line in process.stderr if line.startswith("serving ")), "")
        used = line.split(" with ")[0].rpartition(":")[2]
        check_printed(serve, line.replace(used, port[1]), 0)
        for each in requests:
            check_printed(each, curl(each.text.replace(port[1], used)), 0)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def curl(command: str) -> str:
    """Send the request of a `curl` command, of the options that the page uses."""
    url, data, headers = "", None, {}
    words = iter(shlex.split(command)[1:])
    for word in words:
        match word:
            case "-s":
                pass
            case "-H":
                name, _, value = next(words).partition(": ")
                headers[name] = value
            case "-d":
                data = next(words).encode()
                json.loads(data)
            case _:
                url = word
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as response:  # noqa: S310  # on loopback
        text: str = response.read().decode()
        return text


def test_the_settings_are_read(tmp_path: Path) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    usual, with_runs = (config_from(tomllib.loads(each), tmp_path).serve for each in blocks)
    assert usual.has_auth
    assert usual.workers == 2
    assert with_runs.has_runs
    assert with_runs.scopes[ANSWER_PATH] == ("approve",)


@pytest.mark.parametrize("word", ["/livez", "/readyz", "/status", "/metrics", "/openapi.json", "/docs"])
def test_every_page_is_described(word: str) -> None:
    assert f"`{word}`" in PAGE
