"""A real dashboard: its address, its streams, slow requests and its end; which addresses and settings it accepts."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vesper.config.settings import config_from, default_config
from vesper.dashboard.access.caller import Role
from vesper.dashboard.process import make_access
from vesper.effects.settings import ConfigError

_WAIT_SECONDS = 60
SOURCE = """
import sys
from pathlib import Path
import vesper.dashboard.process as process
from vesper.config.settings import default_config
from vesper.dashboard.app import Site, make_app
process.HEAD_SECONDS = 0.2
process.make_app = lambda stores, access: make_app(stores, access, Site())  # without pages it starts sooner
process.serve_dashboard(default_config(Path(sys.argv[1])), "127.0.0.1", 0, True, print, True)
"""


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    (tmp_path / "nodes").mkdir()
    command = [sys.executable, "-u", "-c", SOURCE, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.fullmatch(r"dashboard at http://127\.0\.0\.1:([0-9]+)\n", process.stdout.readline())
        assert found is not None
        try:
            yield process, int(found[1])
        finally:
            process.kill()


def test_a_stream_reports_changes_and_a_signal_ends_it(
    dashboard: tuple[subprocess.Popen[str], int], tmp_path: Path
) -> None:
    process, port = dashboard
    with socket.create_connection(("127.0.0.1", port), _WAIT_SECONDS) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        stream = http.client.HTTPConnection("127.0.0.1", port, timeout=_WAIT_SECONDS)
        stream.request("GET", "/events?topics=files")
        answer = stream.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.readline() == b"retry: 2000\n"
        assert slow.recv(100) == b"", "a head that never ends keeps its connection"
        (tmp_path / "nodes" / "new.vsp").write_text("")
        assert [answer.readline() for _ in range(3)] == [b"\n", b"event: change\n", b'data: ["files"]\n']
        other = http.client.HTTPConnection("127.0.0.1", port, timeout=_WAIT_SECONDS)
        other.request("GET", "/api/session")
        session = other.getresponse().read().decode()
        assert all(f'"{each.value}"' in session for each in Role), "the user of the process lacks a role"
        process.terminate()
        answer.read()  # the stream ends
        assert process.wait(_WAIT_SECONDS) in (0, -signal.SIGTERM)
        stream.close()
        other.close()


def test_an_open_address_needs_authentication(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = default_config(tmp_path)
    assert make_access(config, "127.0.0.1", False).local.roles == {Role.VIEWER}
    assert make_access(config, "::1", True).local.roles == set(Role)
    for allow_changes in (False, True):
        with pytest.raises(ConfigError, match="other machines can reach this address"):
            make_access(config, "0.0.0.0", allow_changes)  # it is refused
    monkeypatch.setenv("VESPER_SECRET_ANN", "k" * 20)
    config = config_from({"serve": {"keys": [{"name": "ann", "secret": "ANN"}]}}, tmp_path)
    with pytest.raises(ConfigError, match="log in instead"):
        make_access(config, "127.0.0.1", True)
    public = make_access(config, "0.0.0.0", False)  # callers authenticate
    assert public.credentials is not None
    assert not public.hosts
