"""The supervisor with stub workers: starts, deaths, reloads and the end, in processes of their own."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import ROOT
from tests.support.waiting import eventually
from vesper.serve.control import Channel, Options
from vesper.serve.supervisor import FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS, Companion, NotServed, Slot, Supervisor, bind

SERVER = Path(__file__).with_name("stub_server.py")


class Server:
    def __init__(self, folder: Path, workers: int = 2, grace: float = 10.0) -> None:
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(SERVER), str(workers), str(grace)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.port = int(line) if line else None

    def get(self, path: str = "/") -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return int(connection.getresponse().read())

    def pids(self) -> set[int]:
        """Return the workers."""
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return set(map(int, text.split()))

    def text(self) -> str:
        return self.log.read_text()

    def send(self, number: int) -> None:
        self.process.send_signal(number)


@contextlib.contextmanager
def running(folder: Path, workers: int = 2, grace: float = 10.0) -> Iterator[Server]:
    server = Server(folder, workers, grace)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait(30)
        assert server.process.stdout is not None
        server.process.stdout.close()


def test_a_killed_worker_is_replaced_and_no_connection_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        before = server.pids()
        assert len(before) == 2
        assert server.get() in before
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        assert server.get() not in before  # it waits in the backlog
        eventually(lambda: len(server.pids()) == 2 and not server.pids() & before)
        assert server.text().count("ended with signal 9; the next one starts in 0.1 s") == 2


def test_a_worker_that_dies_at_once_waits_longer_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr("vesper.serve.supervisor.time.monotonic", lambda: now)
    slot = Slot(0)
    delays = []
    for _ in range(12):
        slot.ready()
        now += 0.5
        delays.append(slot.ended())
    assert delays[:3] == [FIRST_DELAY_SECONDS, 2 * FIRST_DELAY_SECONDS, 4 * FIRST_DELAY_SECONDS]
    assert delays[-1] == MAX_DELAY_SECONDS
    slot.ready()
    now += 60.0
    assert slot.ended() == FIRST_DELAY_SECONDS
    for _ in range(12):  # a kill every five seconds is no crash loop
        slot.ready()
        now += 5.0
        assert slot.ended() == FIRST_DELAY_SECONDS


def test_a_first_worker_that_cannot_serve_ends_the_server(tmp_path: Path) -> None:
    (tmp_path / "fails").write_text("the node has errors")
    with running(tmp_path) as server:
        assert server.process.wait(30) == 1
        assert "error: the node has errors" in server.text()


def test_a_later_worker_that_cannot_serve_is_tried_again(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        (tmp_path / "fails").write_text("the node has errors")
        (victim, other) = server.pids()
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: "cannot serve: the node has errors" in server.text())
        assert server.get() == other
        (tmp_path / "fails").unlink()
        eventually(lambda: "starts in 0.2 s" in server.text() and len(server.pids()) == 2)


def test_a_reload_reaches_every_worker_and_a_failing_one_stops_at_the_first(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        before = server.pids()
        server.send(signal.SIGHUP)
        eventually(lambda: server.text().count("serves 4 nodes in a new epoch") == 2)
        (tmp_path / "fails").write_text("a mistake")
        server.send(signal.SIGHUP)
        eventually(lambda: "the old epoch stays: a mistake" in server.text())
        assert server.pids() == before
        assert server.get() in before
        assert server.text().count("a mistake") == 1


def test_sigterm_answers_what_the_kernel_has_accepted(tmp_path: Path) -> None:
    with running(tmp_path, workers=1) as server:
        pid = server.pids()
        # The first is being answered, and the others wait in the kernel.
        clients = [socket.create_connection(("127.0.0.1", server.port or 0), 30) for _ in range(4)]
        for client in clients:
            client.sendall(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.send(signal.SIGTERM)
        assert server.process.wait(30) == 0
        answers = []
        for client in clients:
            with client, client.makefile("rb") as answer:
                answers.append(int(answer.read().rpartition(b"\r\n")[2]))
        assert answers == [*pid] * 4


def test_a_second_sigterm_ends_at_once(tmp_path: Path) -> None:
    with running(tmp_path, workers=1, grace=3_000) as server:
        (pid,) = server.pids()
        os.kill(pid, signal.SIGSTOP)

        server.send(signal.SIGTERM)
        eventually(lambda: "the server ends" in server.text())
        server.send(signal.SIGTERM)
        assert server.process.wait(30) == 1
        assert f"worker {pid} has not ended" in server.text()


def test_workers_end_with_their_supervisor(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        pids = server.pids()
        server.process.kill()
        eventually(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in pids))


def test_a_companion_is_replaced_and_ends_with_its_supervisor(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    source = f"import os, sys; print(os.getpid(), file=open({str(starts)!r}, 'a'), flush=True); sys.stdin.read()"
    companion = Companion("dashboard", [sys.executable, "-c", source])

    def pids() -> list[int]:
        companion.check()
        return [int(each) for each in starts.read_text().split()] if starts.exists() else []

    eventually(lambda: len(pids()) == 1)
    os.kill(pids()[0], signal.SIGKILL)
    eventually(lambda: len(pids()) == 2)
    companion.end()
    assert not Path(f"/proc/{pids()[1]}/cmdline").exists()
    companion.end()


class FakeProcess:
    """A process that ends only when it is killed."""

    stdin = None

    def __init__(self, *_: object, **__: object) -> None:
        self.signals: list[str] = []

    def poll(self) -> int | None:
        return -9 if "kill" in self.signals else None

    def terminate(self) -> None:
        self.signals.append("terminate")

    def kill(self) -> None:
        self.signals.append("kill")


def test_a_companion_restarts_for_its_own_files_without_being_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", FakeProcess)
    stamps = [1]
    companion = Companion("dashboard", ["dashboard"], lambda: stamps[0])
    companion.check()
    first: Any = companion._process
    with contextlib.closing(bind("127.0.0.1", 0)) as listener:
        nodes = [1]
        supervisor = Supervisor(listener, Options(), 1, lambda _: None, lambda: nodes[0], companion=companion)
    nodes[0] = 2
    assert supervisor._is_reload_due()
    supervisor._reload()
    companion.check()
    assert first.signals == []
    stamps[0] = 2
    companion.check()
    supervisor._signals.append(signal.SIGHUP)
    assert supervisor._is_reload_due()  # it is ending already
    assert first.signals == ["terminate"]
    companion._kill_at = 0.0
    companion.check()
    companion.check()
    assert first.signals == ["terminate", "kill"]
    assert companion._process not in (None, first)


def test_a_companion_that_cannot_start_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    companion = Companion("dashboard", ["/nonexistent/dashboard"])
    companion.check()
    assert "the dashboard cannot start: " in caplog.text
    assert "the next one starts in 0.1 s" in caplog.text
    assert companion._due > 0


def test_an_address_in_use_is_refused() -> None:
    with bind("127.0.0.1", 0) as listener, pytest.raises(NotServed, match="Address already in use"):
        bind("127.0.0.1", listener.getsockname()[1])


def test_signals_are_taken_from_the_list_that_handlers_add_to() -> None:
    with contextlib.closing(bind("127.0.0.1", 0)) as listener:
        supervisor = Supervisor(listener, Options(), 1, lambda _: None)
    signals = supervisor._signals
    signals += [signal.SIGHUP, signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP]
    assert supervisor._is_reload_due()
    # A copy would lose a signal that comes before it takes the place of the list.
    assert supervisor._signals is signals
    assert signals == [signal.SIGTERM]


def test_a_message_is_not_awaited_from_an_end_that_another_process_holds() -> None:
    ours, theirs = socket.socketpair()
    with theirs, contextlib.closing(Channel(ours)) as channel:
        assert channel.receive() == []
        theirs.sendall(b'{"kind": "ready"}\n')
        assert channel.receive() == [{"kind": "ready"}]
        theirs.shutdown(socket.SHUT_RDWR)
        assert channel.receive() is None
