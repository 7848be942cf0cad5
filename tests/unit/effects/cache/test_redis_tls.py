"""`rediss://`: encrypted, and only with a server whose certificate is good for its name."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.servers import Server, _program, free_port
from tests.unit.effects.ask_of import ask_of, failure, table
from vesper.effects.cache.performer import CachePerformer, CacheSettings
from vesper.values.types import INTEGER, OptionalOf


class _TlsRedis(Server):
    """Its certificate is for 127.0.0.1, and signed by itself."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="vesper-redis-tls-"))
        self.port = free_port()
        self.certificate = folder / "certificate.pem"
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vesper tests")])
        now = dt.datetime.now(dt.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
            .sign(key, hashes.SHA256())
        )
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        (folder / "key.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        command = [_program("redis-server", "redis-server"), "--port", "0", "--tls-port", str(self.port)]
        command += ["--tls-cert-file", str(self.certificate), "--tls-key-file", str(folder / "key.pem")]
        command += ["--tls-auth-clients", "no", "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        super().__init__(folder, command, self._answers)

    def _answers(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.certificate))
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), timeout=5) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        return False


@pytest.fixture(scope="module")
def server() -> Iterator[_TlsRedis]:
    found = _TlsRedis()
    yield found
    found.remove()


def performer(url: str) -> CachePerformer:
    return CachePerformer({"main": CacheSettings.from_table("main", table("caches.main", url=url))})


def test_a_certificate_that_is_known(server: _TlsRedis) -> None:
    cache = performer(f"rediss://127.0.0.1:{server.port}/0?ssl_ca_certs={server.certificate}")
    cache.perform(ask_of("cache_put", {"cache": "main", "ttl_us": "60000000"}, {"key": "x", "value": 7}))
    assert cache.perform(ask_of("cache_get", {"cache": "main"}, {"key": "x"}, OptionalOf(INTEGER))) == 7
    cache.close()


@pytest.mark.parametrize(
    "url",
    [
        "rediss://127.0.0.1:{port}/0",  # signed by nobody that this machine knows
        "rediss://localhost:{port}/0?ssl_ca_certs={certificate}",  # good, for another name
        "redis://127.0.0.1:{port}/0",  # not encrypted
    ],
)
def test_a_server_that_is_not_the_one_is_not_used(server: _TlsRedis, url: str) -> None:
    cache = performer(url.format(port=server.port, certificate=server.certificate))
    ask = ask_of("cache_put", {"cache": "main", "ttl_us": "60000000"}, {"key": "x", "value": 8})
    assert failure("cache_put", lambda: cache.perform(ask)).code == "unavailable"
