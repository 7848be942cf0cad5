"""An HTTP server on loopback, scripted by path and byte, and a payment provider built on it.

The server implements HTTP itself, because a library would not let it misbehave. It records requests and counts
connections when they are accepted: a request that was refused before it was sent leaves no record.

    $ python -m tests.support.web --latency 0.05     # FakeStripe as a separate process; prints its port
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast
from urllib.parse import parse_qsl, unquote

if TYPE_CHECKING:
    from cryptography import x509

ROOT = Path(__file__).parents[2]
_START_SECONDS = 30


@dataclass(frozen=True)
class Got:
    """A completely received request."""

    method: str
    target: str
    headers: Mapping[str, str]
    """Header names in lower case."""
    body: bytes
    connection: int
    """Number of its connection, from 1."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


class Wire:
    """The server's side of a connection, for scripts."""

    def __init__(self, connection: socket.socket, stopping: threading.Event) -> None:
        self._connection = connection
        self.stopping = stopping
        self.is_closed = False

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def wait(self, seconds: float) -> bool:
        """Wait, at most until the server closes; return whether it is still open."""
        return not self.stopping.wait(seconds)

    def close(self) -> None:
        self.is_closed = True


Script: TypeAlias = Callable[[Got, Wire], None]


# -- scripts --------------------------------------------------------------------------------------


def message(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """Return a well-formed response."""
    lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def says(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Script:
    """Respond with a JSON value."""
    return sends(message(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})}))


def sends(*pieces: bytes, pause: float = 0.0, then_close: bool = False) -> Script:
    """Send exactly these bytes, with pauses between the pieces."""

    def script(got: Got, wire: Wire) -> None:
        for piece in pieces:
            wire.send(piece)
            if pause and not wire.wait(pause):
                return
        if then_close:
            wire.close()

    return script


def sends_for_ever(start: bytes, again: bytes, pause: float = 0.0) -> Script:
    """Send a start, then one piece repeatedly until the client disconnects."""

    def script(got: Got, wire: Wire) -> None:
        wire.send(start)
        while not wire.stopping.is_set():
            wire.send(again)
            if pause:
                wire.wait(pause)

    return script


def redirects(location: str, status: int = 302) -> Script:
    return sends(message(status, headers={"Location": location}))


def hangs(got: Got, wire: Wire) -> None:
    """Send nothing and keep the connection open."""
    wire.wait(60)
    wire.close()


def closes(got: Got, wire: Wire) -> None:
    """Close the connection without a response."""
    wire.close()


# -- the server -----------------------------------------------------------------------------------


class Web:
    """An HTTP server on loopback with a thread per connection; `on` scripts a path."""

    def __init__(self, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.got: list[Got] = []
        self.connections = 0
        self.tls_failures = 0
        self._scripts: dict[str, Script] = {}
        self._tls = tls
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    def on(self, path: str, script: Script) -> None:
        self._scripts[path] = script

    def answer(self, got: Got, wire: Wire) -> None:
        """Respond to a request by its script; without one, with 404."""
        self._scripts.get(got.path, sends(message(404, b'{"error": "no such path"}')))(got, wire)

    def drop_idle(self) -> None:
        """Close every connection."""
        with self._lock:
            for each in list(self._open):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_idle()
        self._thread.join(timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                number = self.connections
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        plain = connection
        try:
            if self._tls is not None:
                with self._lock:
                    self._open.discard(plain)
                connection = self._tls.wrap_socket(connection, server_side=True)
                with self._lock:
                    self._open.add(connection)
            wire = Wire(connection, self._stopping)
            with connection.makefile("rb") as lines:
                while not wire.is_closed and not self._stopping.is_set():
                    got = _read_request(lines, number)
                    if got is None:
                        break
                    with self._lock:
                        self.got.append(got)
                    self.answer(got, wire)
        except ssl.SSLError:
            self.tls_failures += 1
        except OSError:
            pass  # the client has gone, as many scripts intend
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()
            plain.close()


def _read_request(lines: Iterable[bytes], number: int) -> Got | None:
    reader = iter(lines)
    first = next(reader, b"")
    words = first.decode("latin-1").split(" ")
    if len(words) != 3:
        return None  # the end of the stream, or no HTTP
    method, target, _ = words
    headers: dict[str, str] = {}
    for line in reader:
        if line in (b"\r\n", b"\n"):
            break
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    body = lines.read(length) if length else b""  # type: ignore[attr-defined]  # of the file that the lines are of
    return Got(method, target, headers, body, number) if len(body) == length else None


# -- a payment provider ---------------------------------------------------------------------------


class FakeStripe(Web):
    """A provider of charges and refunds with idempotency keys, which counts its actions.

    The same key and body get the same response and act once; the same key with another body is an error. The next
    `drop_answers` charges and refunds are made without a response: the connection ends. A customer or source in
    `declines` has no money.
    """

    def __init__(
        self,
        port: int = 0,
        latency: float = 0.0,
        api_key: str | None = None,
        declines: Iterable[str] = ("declined", "tok_declined"),
        drop_answers: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.latency = latency
        self.api_key = api_key
        self.declines = frozenset(declines)
        self.drop_answers = drop_answers
        self.charges: dict[str, dict[str, object]] = {}
        self.refunds: dict[str, dict[str, object]] = {}
        self.charges_by_key: dict[str, int] = {}
        self.refunds_by_key: dict[str, int] = {}
        self.charges_without_key = 0
        self.refunds_without_key = 0
        self._answers: dict[str, tuple[tuple[str, bytes], bytes | None]] = {}
        """Request and response by key; no response while it is being made."""
        self._made_under: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._state = threading.Lock()
        super().__init__(tls, port)

    def counts(self) -> dict[str, object]:
        with self._state:
            return {
                "charges": len(self.charges),
                "charges_by_key": dict(self.charges_by_key),
                "charges_without_key": self.charges_without_key,
                "refunds": len(self.refunds),
                "refunds_by_key": dict(self.refunds_by_key),
                "refunds_without_key": self.refunds_without_key,
                "requests": len(self.got),
            }

    def answer(self, got: Got, wire: Wire) -> None:
        if got.path == "/_counts":
            return wire.send(message(200, json.dumps(self.counts()).encode()))
        if self.latency and not wire.wait(self.latency):
            return None
        if self.api_key is not None and got.headers.get("authorization") != f"Bearer {self.api_key}":
            return wire.send(_error(401, "invalid_api_key"))
        if got.method == "GET":
            return wire.send(self._found(got.path))
        key = got.headers.get("idempotency-key")
        answer = self._once(got, key)
        with self._state:
            is_dropped = self.drop_answers > 0 and answer.startswith(b"HTTP/1.1 200")
            self.drop_answers -= is_dropped
        if is_dropped:
            return wire.close()
        return wire.send(answer)

    def _once(self, got: Got, key: str | None) -> bytes:
        if key is None:
            return self._act(got, None)
        request = (got.target, got.body)
        with self._state:
            known = self._answers.get(key)
            if known is None:
                self._answers[key] = (request, None)
        if known is not None:
            before, answer = known
            if before != request:
                return _error(409, "idempotency_error")
            return _error(409, "idempotency_key_in_use") if answer is None else answer
        answer = self._act(got, key)
        with self._state:
            self._answers[key] = (request, answer)
        return answer

    def _act(self, got: Got, key: str | None) -> bytes:
        fields = _fields(got)
        if fields is None:
            return _error(400, "parameter_invalid")
        if got.method == "POST" and got.path == "/v1/charges":
            return self._charge(fields, key)
        if got.method == "POST" and got.path == "/v1/refunds":
            return self._refund(str(fields.get("charge")), fields, key)
        if got.method == "POST" and got.path.startswith("/v1/charges/") and got.path.endswith("/refunds"):
            return self._refund(got.path.split("/")[3], fields, key)
        return _error(404, "no_such_path")

    def _charge(self, fields: Mapping[str, object], key: str | None) -> bytes:
        amount = _amount(fields.get("amount"))
        if amount is None or amount <= 0 or not fields.get("currency"):
            return _error(400, "parameter_invalid")
        if {str(fields.get("customer")), str(fields.get("source"))} & self.declines:
            return _error(402, "card_declined")
        with self._state:
            charge: dict[str, object] = {
                "id": f"ch_{next(self._numbers)}", "object": "charge", "amount": amount,
                "currency": fields["currency"], "refunded": 0, "status": "succeeded",
            }  # fmt: skip
            self.charges[str(charge["id"])] = charge
            if key is None:
                self.charges_without_key += 1
            else:
                self.charges_by_key[key] = self.charges_by_key.get(key, 0) + 1
                self._made_under[key] = str(charge["id"])
            return message(200, json.dumps(charge).encode(), {"Content-Type": "application/json"})

    def _refund(self, charge_id: str, fields: Mapping[str, object], key: str | None) -> bytes:
        with self._state:
            charge = self.charges.get(charge_id)
            if charge is None:
                return _error(404, "no_such_charge")
            given_back, whole = _amount(charge["refunded"]) or 0, _amount(charge["amount"]) or 0
            amount = _amount(fields.get("amount", whole - given_back))
            if amount is None or not 0 < amount <= whole - given_back:
                return _error(400, "charge_already_refunded")
            charge["refunded"] = given_back + amount
            refund: dict[str, object] = {
                "id": f"re_{next(self._numbers)}", "object": "refund", "amount": amount, "charge": charge_id,
                "status": "succeeded",
            }  # fmt: skip
            self.refunds[str(refund["id"])] = refund
            if key is None:
                self.refunds_without_key += 1
            else:
                self.refunds_by_key[key] = self.refunds_by_key.get(key, 0) + 1
            return message(200, json.dumps(refund).encode(), {"Content-Type": "application/json"})

    def _found(self, path: str) -> bytes:
        """Return `/v1/charges/ID`, or `/v1/made_under/KEY` to look up a request by key."""
        with self._state:
            name = unquote(path.rpartition("/")[2])
            found = None
            if path.startswith("/v1/charges/"):
                found = self.charges.get(name)
            elif path.startswith("/v1/made_under/"):
                found = self.charges.get(self._made_under.get(name, ""))
            return _error(404, "no_such_charge") if found is None else message(200, json.dumps(found).encode())


def _fields(got: Got) -> dict[str, object] | None:
    if got.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(got.body.decode("utf-8"), keep_blank_values=True))
    try:
        found = json.loads(got.body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _amount(given: object) -> int | None:
    text = str(given)
    return int(text) if text.isdigit() else None


def _error(status: int, code: str) -> bytes:
    return message(status, json.dumps({"error": {"code": code}}).encode(), {"Content-Type": "application/json"})


class FakeStripeProcess:
    """`FakeStripe` in a separate process, whose counts survive a killed client."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "tests.support.web", *options]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.strip().isdigit():
            self.close()
            raise RuntimeError(f"the payment provider did not start: {line!r}")
        self.port = int(line)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def counts(self) -> dict[str, object]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_START_SECONDS)
        try:
            connection.request("GET", "/_counts")
            found: dict[str, object] = json.loads(connection.getresponse().read())
            return found
        finally:
            connection.close()

    def close(self) -> None:
        """Close standard input, on which the process ends, as it does if this process is killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--latency", type=float, default=0.0)
    options.add_argument("--api-key")
    options.add_argument("--drop-answers", type=int, default=0)
    given = options.parse_args()
    with FakeStripe(given.port, given.latency, given.api_key, drop_answers=given.drop_answers) as stripe:
        print(stripe.port, flush=True)
        sys.stdin.read()


# -- TLS ------------------------------------------------------------------------------------------


class Authority:
    """A certificate authority for tests, with its certificates."""

    def __init__(self, folder: Path) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(self._signed(self._name, self._key.public_key(), None))

    def server(self, *hosts: str, days: int = 1) -> ssl.SSLContext:
        """Return a TLS context for these names or addresses; `days` below 0 means expired."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pair(*hosts, days=days))
        return context

    def pair(self, *hosts: str, days: int = 1) -> Path:
        """Return a file with a certificate for these names or addresses, and its key."""
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, hosts[0])])
        certificate = self._signed(subject, key.public_key(), hosts, days)
        path = self._folder / f"{hosts[0].replace(':', '_')}-{time.monotonic_ns()}.pem"
        form = serialization.PrivateFormat.PKCS8
        private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        path.write_bytes(certificate + private)
        return path

    def _signed(self, subject: object, public: object, hosts: tuple[str, ...] | None, days: int = 1) -> bytes:
        """Return a signed certificate; without hosts, that of the authority."""
        import ipaddress
        from datetime import UTC, datetime, timedelta

        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization

        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(cast(Any, subject))
            .issuer_name(self._name)
            .public_key(cast(Any, public))
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=10))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=hosts is None, path_length=None), critical=True)
            # Python 3.13 requires these extensions.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(cast(Any, public)), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(_usage(is_authority=hosts is None), critical=True)
        )
        if hosts is not None:
            names: list[x509.GeneralName] = []
            for host in hosts:
                try:
                    names.append(x509.IPAddress(ipaddress.ip_address(host)))
                except ValueError:
                    names.append(x509.DNSName(host))
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _usage(is_authority: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


if __name__ == "__main__":
    main()
