"""A Redis server that speaks TLS only."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.servers import Server, _program, free_port


class TlsRedis(Server):
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
