"""The page about the dashboard, run as written: its first command starts one, the others send requests to it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.docs.test_serve_nodes import curl
from tests.support.console import ROOT, check_printed, parse_session
from vesper.config.settings import config_from

PAGE = (ROOT / "docs" / "how-to" / "use-the-dashboard.md").read_text(encoding="utf-8")


def test_the_session(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```console dashboard\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    start, *requests = parse_session(block)
    command = [sys.executable, "-m", *shlex.split(start.text.replace("--port 8001", "--port 0"))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline().strip()
            port = re.search(r":([0-9]+);", line)
            assert port is not None, line
            check_printed(start, line.replace(port[1], "8001"), 0)
            for each in requests:
                check_printed(each, curl(each.text.replace("8001", port[1])), 0)
            process.terminate()
            assert process.wait(60) == -signal.SIGTERM
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_the_settings_are_read(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    config = config_from(tomllib.loads(block), tmp_path)
    assert config.serve.has_auth
    assert config.dashboard.roles == {"viewer": (), "operator": ("vesper:operate",), "author": ("vesper:author",)}
