from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.web import Authority, Web, message, redirects, says, sends
from tests.unit.effects.http.helpers import PATIENCE, Side, ask_of, failure
from vesper.effects.settings import ConfigError


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


class Secure:
    """A server with a certificate for these names, and what is asked of it."""

    def __init__(self, authority: Authority, *hosts: str, days: int = 1) -> None:
        self.web = Web(authority.server(*hosts, days=days))
        self.web.on("/it", says("secure"))
        self.side = Side(self.web)
        self.ca_file = str(authority.ca_file)

    def base(self, host: str) -> str:
        return f"https://{host}:{self.web.port}"

    def close(self) -> None:
        self.side.close()
        self.web.close()


@pytest.fixture
def shop(authority: Authority) -> Iterator[Secure]:
    made = Secure(authority, "shop.example", "127.0.0.1")
    yield made
    made.close()


@pytest.mark.parametrize("host", ["shop.example", "127.0.0.1", "SHOP.example."])
def test_a_certificate_of_our_authority(shop: Secure, host: str) -> None:
    performer = shop.side.performer(base_url=shop.base(host), ca_file=shop.ca_file)
    assert [performer.perform(ask_of()) for _ in range(5)] == ["secure"] * 5
    assert shop.web.connections == 1


def test_another_name_is_refused(shop: Secure) -> None:
    performer = shop.side.performer(base_url=shop.base("bank.example"), ca_file=shop.ca_file)
    failed = failure(performer, ask_of(method="POST"))
    assert (failed.code, failed.may_have_happened) == ("unavailable", False)
    assert failed.message.startswith("the certificate of `bank.example` is refused: ")
    assert "bank.example" in failed.message.partition("refused: ")[2]
    assert shop.web.got == []


def test_an_authority_that_nobody_trusts_is_refused(shop: Secure) -> None:
    failed = failure(shop.side.performer(base_url=shop.base("shop.example")), ask_of(method="POST"))
    assert (failed.code, failed.may_have_happened) == ("unavailable", False)
    assert "is refused: unable to get local issuer certificate" in failed.message
    assert shop.web.got == []


def test_a_certificate_that_has_run_out_is_refused(authority: Authority) -> None:
    old = Secure(authority, "shop.example", days=-1)
    failed = failure(old.side.performer(base_url=old.base("shop.example"), ca_file=old.ca_file), ask_of())
    old.close()
    assert "is refused: certificate has expired" in failed.message
    assert old.web.got == []


@pytest.mark.parametrize(
    "host, days, problem",
    [("shop.example", 1, None), ("shop.example", -1, "certificate has expired"), ("bank.example", 1, "bank.example")],
)
def test_a_certificate_that_signed_itself_is_trusted_by_name(
    tmp_path: Path, host: str, days: int, problem: str | None
) -> None:
    """Such a certificate is often that of an authority too, as `openssl req -x509` makes it."""
    path = self_signed(tmp_path, "shop.example", days)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    with Web(context) as web:
        web.on("/it", says("secure"))
        side = Side(web)
        performer = side.performer(base_url=f"https://{host}:{web.port}", ca_file=str(path))
        if problem is None:
            assert performer.perform(ask_of()) == "secure"
        else:
            message_ = failure(performer, ask_of()).message
            assert problem in message_.partition("is refused: ")[2]
        side.close()


def self_signed(folder: Path, host: str, days: int) -> Path:
    """Write a certificate that is its own authority, and its key."""
    now = datetime.now(UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path = folder / "self.pem"
    private = key.private_bytes(pem, form, serialization.NoEncryption())
    path.write_bytes(certificate.public_bytes(pem) + private)
    return path


def test_a_server_without_tls(side: Side) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(message(400))

        thread = threading.Thread(target=answer)
        thread.start()
        failed = failure(side.performer(base_url=f"https://127.0.0.1:{listener.getsockname()[1]}"), ask_of())
        thread.join(PATIENCE)
    assert (failed.code, failed.may_have_happened) == ("unavailable", False)
    assert failed.message.startswith("no TLS connection with `127.0.0.1`: ")


def test_a_handshake_that_hangs(side: Side) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        base = f"https://127.0.0.1:{listener.getsockname()[1]}"
        failed = failure(side.performer(base_url=base, connect_timeout="300ms"), ask_of())
    assert (failed.code, failed.may_have_happened) == ("timeout", False)
    assert failed.message == "no time was left during the TLS handshake with 127.0.0.1"


def test_an_answer_that_somebody_cut_short_is_no_answer(shop: Secure) -> None:
    """The end of the body is the end of the connection, and TLS did not say that it ends."""
    shop.web.on("/it", sends(b"HTTP/1.1 200 -\r\n\r\n123", then_close=True))
    failed = failure(shop.side.performer(base_url=shop.base("127.0.0.1"), ca_file=shop.ca_file), ask_of())
    assert (failed.code, failed.may_have_happened) == ("unavailable", True)


def test_a_redirect_cannot_take_the_lock_off(shop: Secure, side: Side) -> None:
    side.web.on("/there", says("in the clear"))
    shop.web.on("/it", redirects(f"{side.web.url}/there"))
    allowed = ["127.0.0.1", f"127.0.0.1:{side.web.port}"]
    performer = shop.side.performer(
        base_url=shop.base("127.0.0.1"), ca_file=shop.ca_file, redirects="allowed_hosts", allowed_hosts=allowed
    )
    failed = failure(performer, ask_of())
    assert (failed.code, "from https to http" in failed.message) == ("http_302", True)
    assert side.web.connections == 0


@pytest.mark.parametrize(
    "content", ["", "not a certificate", "-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n"]
)
def test_a_file_without_certificates(side: Side, tmp_path: Path, content: str) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"providers\.shop\.ca_file: `.*` holds no certificates"):
        side.performer(ca_file=str(path))
