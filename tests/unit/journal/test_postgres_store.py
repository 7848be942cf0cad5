"""What only the store in a database has: lost answers, encrypted sessions, and addresses of all forms."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.journal.helpers import begin, begun, end, in_child, result
from vesper.journal.journal import Journal, JournalError, open_journal

if TYPE_CHECKING:
    from tests.support.servers import Postgres


class Proxy:
    """A server before a server. `lose` cuts the connection with the next request, or with the answer to it."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.lose: str | None = None
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with closing(client), closing(socket.create_connection(("127.0.0.1", self._target))) as server:
            while True:
                for each in select.select([client, server], [], [])[0]:
                    data = each.recv(1 << 16)
                    is_request = each is client
                    if not data or (self.lose == "request" and is_request):
                        self.lost += bool(data)
                        return
                    (server if is_request else client).sendall(data)
                    if self.lose == "answer" and is_request:
                        server.recv(1 << 16)  # it was done
                        self.lost += 1
                        return

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def proxy(postgres: Postgres) -> Iterator[Proxy]:
    opened = Proxy(postgres.port)
    yield opened
    opened.close()


@pytest.fixture
def behind(postgres: Postgres, proxy: Proxy) -> Iterator[Journal]:
    """A journal behind the proxy."""
    dsn = postgres.new_database().replace(f":{postgres.port}/", f":{proxy.port}/")
    opened = open_journal(dsn)
    yield opened
    opened.close()


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_commit_with_an_unknown_result_is_written_once(behind: Journal, proxy: Proxy, lost: str) -> None:
    run = begun(behind, "run-a")
    for turn in range(3):
        run.append(result(f"lost[{turn}]"))
        proxy.lose = lost
        with pytest.raises(JournalError, match="cannot be reached, or ended the connection"):
            run.commit()
        proxy.lose = None
        run.append(result(f"after[{turn}]"))
        run.commit()
    assert proxy.lost == 3
    paths = [stored.entry.path for stored in behind.read("run-a").entries[1:]]
    assert paths == [f"{name}[{turn}]" for turn in range(3) for name in ("lost", "after")]


def test_a_beginning_with_an_unknown_result_is_written_once(behind: Journal, proxy: Proxy) -> None:
    begun(behind, "run-a")  # the definition is known: the next beginning is one statement
    run = begin(behind, "run-b")
    proxy.lose = "answer"
    with pytest.raises(JournalError, match="cannot be reached"):
        run.commit()
    proxy.lose = None
    end(run)
    assert len(behind.read("run-b").entries) == 2


def test_the_sessions_of_a_parent_are_left_alone(behind: Journal) -> None:
    """A child that ends neither uses nor ends a session of its parent."""
    run = begun(behind, "run-a")

    def child() -> None:
        begun(behind, "run-b")
        behind.close()

    assert in_child(child) == 0
    for _ in range(3):
        run.append(result())
        run.commit()
    assert len(behind.read("run-a").entries) == 4


def test_a_socket_in_the_file_system_and_the_environment(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    base = postgres.new_database()
    database = base.rpartition("/")[2]
    for name, value in {"PGHOST": str(postgres.folder), "PGPORT": str(postgres.port), "PGUSER": "vesper"}.items():
        monkeypatch.setenv(name, value)
    journal = open_journal(f"postgresql:///{database}")
    begun(journal, "run-a")
    journal.close()
    journal = open_journal(base)
    assert journal.read("run-a").summary.node_id == "pay"
    journal.close()


def test_another_host_of_the_list_is_tried(postgres: Postgres) -> None:
    database = postgres.new_database().rpartition("/")[2]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    journal = open_journal(f"postgresql://vesper@127.0.0.1:{closed},127.0.0.1:{postgres.port}/{database}")
    begun(journal, "run-a")
    journal.close()


def test_an_interrupt_ends_the_wait_for_a_lock(postgres: Postgres) -> None:
    import psycopg

    dsn = postgres.new_database()
    journal = open_journal(dsn)
    run = begun(journal, "run-a")
    with psycopg.connect(dsn) as other:
        other.execute("LOCK TABLE vesper_executions IN ACCESS EXCLUSIVE MODE")
        run.append(result())
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            run.commit()
        assert time.monotonic() - began < 10
        timer.join()
    run.commit()
    assert len(journal.read("run-a").entries) == 2
    journal.close()


# -- encrypted sessions -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Postgres, Path]]:
    """A server that takes only encrypted sessions, and its certificate, which is for `localhost`."""
    from tests.support.servers import Postgres

    folder = tmp_path_factory.mktemp("certificates")
    certificate, key = folder / "server.crt", folder / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    server = Postgres()
    import psycopg

    data = server.folder / "data"
    for source in (certificate, key):
        (data / source.name).write_bytes(source.read_bytes())
        (data / source.name).chmod(0o600)
        if os.getuid() == 0:
            status = data.stat()
            os.chown(data / source.name, status.st_uid, status.st_gid)
    rules = (
        "local all all trust",
        "hostssl all ada all scram-sha-256",
        "hostssl all all all trust",
        "host all all all reject",
    )
    (data / "pg_hba.conf").write_text("\n".join(rules) + "\n", encoding="utf-8")
    with psycopg.connect(host=str(server.folder), port=server.port, user="vesper", dbname="postgres") as connection:
        connection.autocommit = True
        connection.execute("CREATE ROLE ada LOGIN SUPERUSER PASSWORD 'hun:ter2'")
        connection.execute("ALTER SYSTEM SET ssl = on")
        connection.execute("SELECT pg_reload_conf()")
    yield server, certificate
    server.remove()


@pytest.mark.parametrize(
    "options,refusal",
    [
        ("", None),
        ("sslmode=allow", None),
        ("sslmode=require", None),
        ("sslmode=verify-ca&sslrootcert={root}", None),
        ("sslmode=verify-full&sslrootcert={root}", None),
        ("sslmode=disable", "no encryption"),
        ("sslmode=verify-full", "no root certificate is there"),
        ("sslmode=verify-full&sslrootcert={root}.missing", "cannot be read"),
        ("sslmode=verify-full&sslrootcert=system", "invalid peer certificate"),
    ],
)
def test_modes_of_encryption(encrypted: tuple[Postgres, Path], options: str, refusal: str | None) -> None:
    server, root = encrypted
    journal = open_journal(f"postgresql://vesper@localhost:{server.port}/postgres?{options.format(root=root)}")
    if refusal is None:
        journal.find()
    else:
        with pytest.raises(JournalError, match=refusal):
            journal.find()
    journal.close()


def test_a_certificate_for_another_name(encrypted: tuple[Postgres, Path]) -> None:
    server, root = encrypted
    for mode in ("verify-ca", "require"):
        open_journal(f"postgresql://vesper@127.0.0.1:{server.port}/postgres?sslmode={mode}&sslrootcert={root}").find()
    journal = open_journal(
        f"postgresql://vesper@127.0.0.1:{server.port}/postgres?sslmode=verify-full&sslrootcert={root}"
    )
    with pytest.raises(JournalError, match="not valid for name"):
        journal.find()


def test_a_password_of_a_file(encrypted: tuple[Postgres, Path], tmp_path: Path) -> None:
    server, _ = encrypted
    file = tmp_path / "pgpass"
    for password, is_right in (("hun\\:ter2", True), ("hunter3", False)):
        file.write_text(f"localhost:{server.port}:postgres:ada:{password}\n", encoding="utf-8")
        file.chmod(0o600)
        journal = open_journal(f"postgresql://ada@localhost:{server.port}/postgres?passfile={file}")
        if is_right:
            journal.find()
        else:
            with pytest.raises(JournalError, match="password authentication failed") as caught:
                journal.find()
            assert "hunter3" not in str(caught.value)
        journal.close()
