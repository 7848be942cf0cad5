"""`vesper serve` as a whole: requests, pages, kills, reloads and the end, in processes of their own."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support.nodes import ROOT
from tests.support.waiting import eventually
from vesper.serve.control import Options
from vesper.serve.nodes import NothingServed, find_served
from vesper.serve.supervisor import bind

DOUBLE = """node_id: double_v1
type: function
intent: Double a number

inputs:
  number: {type: integer, constraints: [{min: 0}]}

outputs:
  success:
    result: integer

flow:
  - operation: return
    success: {result: number * 2}
"""
NOTE = """node_id: note_v1
type: http_handler
intent: Keep a note

inputs:
  name: string
  text: string

outputs:
  success:
    written: integer
  error:
    error_code: enum[bad_name]
    message: string

flow:
  - operation: validation
    require:
      - condition: length(name) < 20
        error: {error_code: bad_name, message: "a name has less than 20 characters"}

  - step: written
    operation: file
    action: write
    root: notes
    path: "{name}.txt"
    content: text
    key: name

  - operation: return
    success: {written: written}

security:
  capabilities_required: [filesystem.write.notes]

http:
  method: POST
  path: /notes/{name}
  status: 201
"""
CONFIG = """[files.notes]
path = "notes"

[[grants]]
nodes = ["note_v1"]
allow = ["filesystem.write.notes"]

[serve]
expose = ["double"]
access_log = true
"""
KEYS = """
[secrets]
source = "file"
path = "secrets"

[[serve.keys]]
name = "alice"
secret = "alice"
"""
FIRST, SECOND = "first-key-0123456789", "second-key-0123456789"


class Serving:
    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "vesper", "serve", "--port", "0", *options],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        eventually(lambda: self.process.poll() is not None or self.ready() != "")
        self.port = int(self.ready().split(" with ")[0].rpartition(":")[2] or 0)

    def request(
        self, method: str, path: str, value: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            body = None if value is None else json.dumps(value)
            given = {} if value is None else {"Content-Type": "application/json"}
            connection.request(method, path, body, {**given, **(headers or {})})
            response = connection.getresponse()
            data = response.read()
            is_json = "json" in response.headers.get("Content-Type", "")
            return response.status, json.loads(data) if is_json and data else data

    def double(self, number: int, key: str | None = None) -> tuple[int, Any]:
        headers = {} if key is None else {"X-API-Key": key}
        return self.request("POST", "/nodes/double_v1", {"number": number}, headers)

    def ready(self) -> str:
        """Return the line that tells where the nodes are served; empty before."""
        return next((line for line in self.text().splitlines() if line.startswith("serving ")), "")

    def pids(self) -> set[int]:
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return set(map(int, text.split()))

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def reload(self, says: str) -> None:
        """Send SIGHUP, and wait for one more of these lines in the log."""
        before = self.text().count(says)
        self.process.send_signal(signal.SIGHUP)
        eventually(lambda: self.text().count(says) > before)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()


def shop(folder: Path, config: str = CONFIG) -> Path:
    for name in ("nodes", "notes", "secrets"):
        (folder / name).mkdir()
    (folder / "nodes" / "double_v1.vsp").write_text(DOUBLE)
    (folder / "nodes" / "note_v1.vsp").write_text(NOTE)
    (folder / "vesper.toml").write_text(config)
    write_secret(folder, FIRST)
    return folder


def write_secret(folder: Path, text: str) -> None:
    file = folder / "secrets" / "alice"
    file.touch(0o600)
    file.write_text(text)


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Two workers on loopback without authentication; SIGTERM ends them at the end of the tests."""
    with Serving(shop(tmp_path_factory.mktemp("open")), "--workers", "2", "--engine", "direct") as server:
        assert server.port, server.text()
        yield server
        server.process.terminate()
        assert server.process.wait(60) == 0


@pytest.fixture(scope="module")
def closed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One worker on all addresses, with a key."""
    with Serving(
        shop(tmp_path_factory.mktemp("closed"), CONFIG + KEYS), "--host", "0.0.0.0", "--engine", "direct"
    ) as server:
        assert server.port, server.text()
        yield server


def test_a_line_tells_where_the_nodes_are_served_and_how_to_stop(open_server: Serving) -> None:
    at = f"http://127.0.0.1:{open_server.port}"
    assert open_server.ready() == f"serving 2 nodes at {at} with 2 workers; Ctrl-C or SIGTERM ends it"


def test_nodes_with_and_without_effects_answer(open_server: Serving) -> None:
    assert open_server.double(21) == (200, {"result": 42})
    status, problem = open_server.double(-1)
    assert (status, problem["status"]) == (422, 422)
    assert open_server.request("POST", "/notes/a", {"text": "hello"}) == (201, {"written": 5})
    assert (open_server.folder / "notes" / "a.txt").read_text() == "hello"
    assert open_server.request("GET", "/notes/a")[0] == 405
    assert open_server.request("POST", "/nodes/note_v1", {})[0] == 404


def test_pages_describe_the_server_and_leave_no_rows(open_server: Serving) -> None:
    assert open_server.request("POST", "/notes/b", {"text": "x"})[0] == 201
    before = _rows(open_server.folder)
    status, ready = open_server.request("GET", "/readyz")
    assert (status, ready["is_ready"], ready["journal"], ready["in_doubt"]) == (200, True, "writable", 0)
    _, about = open_server.request("GET", "/status")
    assert [each["id"] for each in about["nodes"]] == ["double_v1", "note_v1"]
    assert "kill_switch" not in about
    assert open_server.request("GET", "/livez")[0] == 200
    assert "/notes/{name}" in open_server.request("GET", "/openapi.json")[1]["paths"]
    assert b"<html" in open_server.request("GET", "/docs")[1]
    assert b"sir_" in open_server.request("GET", "/metrics")[1]
    assert _rows(open_server.folder) == before


def test_the_access_log_has_templates_and_no_paths(open_server: Serving) -> None:
    assert open_server.request("POST", "/notes/very-private", {"text": "x"})[0] == 201
    eventually(lambda: "POST /notes/{name} 201" in open_server.text())
    assert open_server.request("POST", "/very-private-too", {"text": "x"})[0] == 404
    eventually(lambda: "POST - 404" in open_server.text())
    assert "very-private" not in open_server.text()


def test_a_killed_worker_is_replaced(open_server: Serving) -> None:
    before = open_server.pids()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert open_server.double(2) == (200, {"result": 4})
    eventually(lambda: len(open_server.pids()) == 2 and not open_server.pids() & before)


def test_a_reload_serves_the_new_text_and_a_mistake_keeps_the_old(open_server: Serving) -> None:
    node = open_server.folder / "nodes" / "double_v1.vsp"
    workers = "serves 2 nodes in a new epoch"
    node.write_text(DOUBLE.replace("number * 2", "number * 3"))
    count = open_server.text().count(workers)
    open_server.process.send_signal(signal.SIGHUP)
    eventually(lambda: open_server.text().count(workers) >= count + 2)
    assert open_server.double(7) == (200, {"result": 21})
    node.write_text(DOUBLE.replace("number * 2", "numbr * 2"))
    open_server.reload("the old epoch stays: ")
    assert "numbr" in open_server.text()
    assert open_server.double(7) == (200, {"result": 21})
    node.write_text(DOUBLE)


def test_a_request_that_began_before_a_reload_ends_in_its_epoch(open_server: Serving) -> None:
    says, body = "in a new epoch", b'{"text": "late"}'
    head = (
        "POST /notes/late HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", open_server.port), timeout=60) as client:
        client.sendall(head.encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 100 ")
        count = open_server.text().count(says)
        open_server.process.send_signal(signal.SIGHUP)
        eventually(lambda: open_server.text().count(says) >= count + 2)
        time.sleep(1.5)  # the old epoch could be closed by now
        client.sendall(body)
        assert client.recv(4096).startswith(b"HTTP/1.1 201 ")


def test_processes_that_a_worker_starts_inherit_none_of_its_sockets(open_server: Serving) -> None:
    for pid in open_server.pids():
        for each in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = str(each.readlink())
                (flags,) = re.findall(r"flags:\s*(\d+)", Path(f"/proc/{pid}/fdinfo/{each.name}").read_text())
            except FileNotFoundError:  # it was closed meanwhile
                continue
            assert not target.startswith("socket:") or int(flags, 8) & os.O_CLOEXEC, each


def test_callers_need_a_key_which_names_them(closed_server: Serving) -> None:
    assert closed_server.double(1)[0] == 401
    assert closed_server.double(1, SECOND)[0] == 401
    assert closed_server.double(1, FIRST) == (200, {"result": 2})
    assert closed_server.request("GET", "/readyz")[0] == 200
    assert closed_server.request("GET", "/status")[0] == 401
    assert closed_server.request("POST", "/notes/c", {"text": "x"}, {"X-API-Key": FIRST})[0] == 201
    command = [sys.executable, "-m", "vesper", "journal", "list", "--format", "json"]
    listed = subprocess.run(command, cwd=closed_server.folder, capture_output=True, text=True, check=True)
    assert json.loads(listed.stdout)


def test_a_reload_reads_secrets_again(closed_server: Serving) -> None:
    secret = closed_server.folder / "secrets" / "alice"
    write_secret(closed_server.folder, SECOND)
    closed_server.reload("in a new epoch")
    assert closed_server.double(1, FIRST)[0] == 401
    assert closed_server.double(1, SECOND)[0] == 200
    secret.unlink()
    closed_server.reload("the old epoch stays: ")
    assert closed_server.double(1, SECOND)[0] == 200
    write_secret(closed_server.folder, FIRST)
    closed_server.reload("in a new epoch")
    assert closed_server.double(1, FIRST)[0] == 200


@pytest.mark.parametrize("config", [CONFIG, "this is no TOML", CONFIG + "[[serve.keys]]\n"])
def test_a_reload_never_drops_authentication_on_a_public_address(closed_server: Serving, config: str) -> None:
    file = closed_server.folder / "vesper.toml"
    file.write_text(config)
    closed_server.reload("the old epoch stays: ")
    assert closed_server.double(1)[0] == 401
    assert closed_server.double(1, FIRST)[0] == 200
    file.write_text(CONFIG + KEYS)


def test_a_reload_never_drops_authentication_on_this_machine_either(tmp_path: Path) -> None:
    tls = '[serve.tls]\ncertificate = "none.pem"\nkey = "none.pem"\n'
    with Serving(shop(tmp_path, CONFIG + KEYS), "--engine", "direct") as server:
        file = tmp_path / "vesper.toml"
        for change in (lambda: file.write_text(CONFIG), file.unlink, lambda: file.write_text(CONFIG + KEYS + tls)):
            change()
            server.reload("the old epoch stays: ")
            assert server.double(1)[0] == 401
            assert server.double(1, FIRST)[0] == 200
        assert "serve.tls" in server.text()


def test_a_public_address_without_authentication_is_refused(tmp_path: Path) -> None:
    with Serving(shop(tmp_path), "--host", "0.0.0.0") as server:
        assert server.process.returncode == 1
        assert "--insecure" in server.text()


def test_a_worker_without_a_supervisor_drains(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    options = Options(nodes=(str(shop(tmp_path) / "nodes"),), engine="direct", expose=("double",))
    with theirs, closing(bind("127.0.0.1", 0)) as listener:
        ends = (listener.fileno(), theirs.fileno())
        done = subprocess.run(
            [sys.executable, "-m", "vesper.serve.worker", *map(str, ends), options.to_json()],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            pass_fds=ends,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, "the supervisor is gone" in done.stderr) == (0, True), done.stderr


def test_mistakes_at_the_start_end_the_command(tmp_path: Path) -> None:
    (shop(tmp_path) / "nodes" / "double_v1.vsp").write_text(DOUBLE.replace("number * 2", "numbr * 2"))
    with Serving(tmp_path) as server:
        assert server.process.returncode == 1
        assert "numbr" in server.text()


def test_a_pattern_without_a_node_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingServed, match="`dubble`"):
        find_served([str(shop(tmp_path) / "nodes")], ("double", "dubble"))


def _rows(folder: Path) -> int:
    with closing(sqlite3.connect(f"file:{folder / '.vesper' / 'journal.db'}?mode=ro", uri=True)) as database:
        (count,) = database.execute("SELECT count(*) FROM vesper_executions").fetchone()
        return int(count)
