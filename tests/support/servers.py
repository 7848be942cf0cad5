"""Real servers for tests, each in its own folder, stopped with the process that started it.

A missing server fails the test that needs it, never skips it; `make system` installs both.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

_START_SECONDS = 30


def free_port() -> int:
    """Return a free port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _program(name: str, package: str) -> str:
    places = [shutil.which(name), *sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), reverse=True)]
    found = next((place for place in places if place is not None), None)
    if found is None:
        raise RuntimeError(f"these tests need `{name}`: run `make system`, or install Debian's {package}")
    return found


class Server:
    """A server process with a folder, stopped with this process. `stop` can be as hard as a crash."""

    def __init__(self, folder: Path, command: list[str], is_up: Callable[[], bool], user: str | None = None) -> None:
        self.folder = folder
        self._command = command
        self._is_up = is_up
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        atexit.register(self.remove)
        self.start()

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, user=self._user, start_new_session=True
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self._command[0]} did not start:\n{(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)

    def stop(self, hard: bool = False) -> None:
        """Stop the server; `hard` leaves no time for writes."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGINT)
            process.wait()

    def remove(self) -> None:
        """Stop the server and delete its folder; a forked child does neither."""
        if os.getpid() == self._owner:
            with contextlib.suppress(ProcessLookupError):
                self.stop(hard=True)
            shutil.rmtree(self.folder, ignore_errors=True)


class Postgres(Server):
    """A PostgreSQL server on a Unix socket and a port of loopback. `durable` syncs as in production."""

    def __init__(self, durable: bool = False) -> None:
        folder = Path(tempfile.mkdtemp(prefix="vesper-postgres-"))
        folder.chmod(0o755)
        data = folder / "data"
        user = None
        if os.getuid() == 0:  # the server refuses to run as root
            user = "postgres"
            account = pwd.getpwnam(user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        initdb = [_program("initdb", "postgresql"), "-D", str(data), "-U", "vesper", "-A", "trust", "-N", "-E", "UTF8"]
        subprocess.run([*initdb, "--no-locale"], check=True, user=user, capture_output=True, cwd=folder)
        self.port = free_port()
        settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(folder),
            "fsync": "on" if durable else "off",
            "synchronous_commit": "on" if durable else "off",
            "max_connections": "200",
            "shared_buffers": "32MB",
        }
        command = [_program("postgres", "postgresql"), "-D", str(data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        self._databases = 0
        super().__init__(folder, command, self._accepts, user)

    def dsn(self, database: str = "postgres") -> str:
        return f"postgresql://vesper@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Return the DSN of a new database."""
        import psycopg

        self._databases += 1
        name = f"test_{os.getpid()}_{self._databases}"
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.dsn(name)

    def _accepts(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.dsn(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


class Redis(Server):
    """A Redis server on a port of loopback without persistence. `durable` syncs every command."""

    def __init__(self, durable: bool = False) -> None:
        self.port = free_port()
        folder = Path(tempfile.mkdtemp(prefix="vesper-redis-"))
        command = [_program("redis-server", "redis-server"), "--port", str(self.port), "--bind", "127.0.0.1"]
        kept = ["--appendonly", "yes", "--appendfsync", "always"] if durable else ["--appendonly", "no"]
        super().__init__(folder, [*command, "--save", "", *kept, "--dir", str(folder)], self._answers)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        return False
