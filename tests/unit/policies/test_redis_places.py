"""Limits in Redis over TLS, and over a socket file."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.proofs.policies.reference.gate import Admitted, Rejected
from tests.support.servers import _program
from tests.support.shared_limits import RedisPolicyState
from tests.support.tls_redis import TlsRedis
from tests.support.waiting import eventually
from vesper.policies.settings import Policy

ROOM: Policy = {"concurrency": 2}


@pytest.fixture(scope="module")
def server() -> Iterator[TlsRedis]:
    found = TlsRedis()
    yield found
    found.remove()


def test_a_certificate_that_is_known(server: TlsRedis) -> None:
    url = f"rediss://127.0.0.1:{server.port}/0?ssl_ca_certs={server.certificate}"
    state = RedisPolicyState(url, on_store_failure="refuse", timeout=30)
    assert isinstance(state.acquire("n", ROOM, 0).decision, Admitted)
    state.close()


@pytest.mark.parametrize(
    "url",
    [
        "rediss://127.0.0.1:{port}/0",  # signed by no authority of this machine
        "rediss://localhost:{port}/0?ssl_ca_certs={certificate}",  # valid, for another name
        "rediss://127.0.0.1:{port}/0?ssl_ca_certs=/no/such/file",
        "redis://127.0.0.1:{port}/0",  # not encrypted
    ],
)
def test_a_server_that_is_not_the_one_is_not_used(server: TlsRedis, url: str, caplog: pytest.LogCaptureFixture) -> None:
    address = url.format(port=server.port, certificate=server.certificate)
    state = RedisPolicyState(address, on_store_failure="refuse", timeout=30)
    assert isinstance(state.acquire("n", ROOM, 0).decision, Rejected)
    assert "(ConnectionError)" in caplog.text
    state.close()


def answers(file: Path) -> bool:
    with redis.Redis(unix_socket_path=str(file)) as client, contextlib.suppress(redis.ConnectionError):
        return bool(client.ping())
    return False


def test_a_socket_file(tmp_path: Path) -> None:
    file = tmp_path / "redis.sock"
    command = [_program("redis-server", "redis-server"), "--port", "0", "--unixsocket", str(file), "--save", ""]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: answers(file))
        state = RedisPolicyState(f"unix://{file}?db=3", on_store_failure="refuse", timeout=30)
        assert isinstance(state.acquire("n", ROOM, 0).decision, Admitted)
        state.close()
    finally:
        server.terminate()
        server.wait(20)
