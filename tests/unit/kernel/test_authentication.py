"""Keys, tokens and client certificates against real kernels."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.waiting import eventually
from tests.support.web import Authority
from vesper.config.kernel import KernelSettings
from vesper.config.serve import JwtSettings, KeySettings
from vesper.effects.settings import ConfigError
from vesper.kernel import AsyncClient, Client, Kernel, KernelError, v1
from vesper.kernel.calls import BothStream, Rpc, Unary
from vesper.kernel.program import find_program
from vesper.kernel.rpcs import Rpcs

ISSUER, AUDIENCE = "https://id.example", "kernel"
COUNTS = v1.GetProcessCountsRequest()
KEY = "0123456789abcdef"


def encoded(data: bytes | dict[str, Any]) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Issuer:
    """An issuer of tokens and its key set."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rotate()

    def rotate(self) -> None:
        self.key = Ed25519PrivateKey.generate()
        self.public = self.key.public_key().public_bytes_raw()
        keys = [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": encoded(self.public)}]
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({"keys": keys}), encoding="utf-8")
        fresh.rename(self.path)

    def token(self, key: Ed25519PrivateKey | None = None, alg: str = "EdDSA", **claims: object) -> str:
        usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "planner", "exp": time.time() + 600}
        payload = {name: each for name, each in (usual | claims).items() if each is not None}
        signed = f"{encoded({'alg': alg, 'kid': 'k'})}.{encoded(payload)}"
        match alg:
            case "none":
                signature = b""
            case "HS256":
                signature = hmac.digest(self.public, signed.encode(), hashlib.sha256)
            case _:
                signature = (key or self.key).sign(signed.encode())
        return f"{signed}.{encoded(signature)}"

    def settings(self, refresh: float = 600) -> JwtSettings:
        return JwtSettings(ISSUER, AUDIENCE, str(self.path), refresh=refresh)


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("issuer") / "keys.json")


@pytest.fixture(scope="module")
def kernel(issuer: Issuer) -> Iterator[Kernel]:
    with Kernel(settings=KernelSettings(jwt=(issuer.settings(),)), token=issuer.token()) as found:
        yield found


def refusal(address: str, **connection: Any) -> str:
    """Return code and message of a refused call."""
    with Client(address, timeout=20, **connection) as client, pytest.raises(KernelError) as caught:
        client.get_process_counts(COUNTS)
    return str(caught.value)


def is_accepted(address: str, **connection: Any) -> bool:
    with Client(address, timeout=20, **connection) as client:
        return client.get_process_counts(COUNTS).total == 0


def test_a_valid_token_is_accepted(kernel: Kernel, issuer: Issuer) -> None:
    assert kernel.client.get_process_counts(COUNTS).total == 0
    assert is_accepted(kernel.address, token=issuer.token(aud=["other", AUDIENCE]))
    tokens = iter((issuer.token(), "expired since"))
    with Client(kernel.address, token=lambda: next(tokens)) as client:
        client.get_process_counts(COUNTS)
        with pytest.raises(KernelError, match="UNAUTHENTICATED"):
            client.get_process_counts(COUNTS)


@pytest.mark.parametrize(
    "claims, message",
    [
        ({"exp": 1.0}, "has expired"),
        ({"exp": None}, "has no `exp`"),
        ({"nbf": 1e11}, "not valid yet"),
        ({"iss": "https://evil.example"}, "issuer is not known"),
        ({"aud": "api"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"sub": None}, "names no subject"),
        ({"alg": "none"}, "algorithm is refused"),
        ({"alg": "HS256"}, "algorithm is refused"),
        ({"alg": "RS256"}, "key is not known"),
        ({"key": Ed25519PrivateKey.generate()}, "signature is wrong"),
        ({"filler": "x" * 8_192}, "longer than 8 KiB"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_bad_token_is_refused(kernel: Kernel, issuer: Issuer, claims: dict[str, Any], message: str) -> None:
    found = refusal(kernel.address, token=issuer.token(**claims))
    assert found.startswith("UNAUTHENTICATED: ")
    assert message in found


@pytest.mark.parametrize("token", [None, "opaque", "a.b.c", "..", "e30.e30.e30"])
def test_what_is_no_token_is_refused(kernel: Kernel, token: str | None) -> None:
    assert refusal(kernel.address, token=token).startswith("UNAUTHENTICATED: ")


def test_metadata_beyond_the_limit_is_refused(kernel: Kernel, issuer: Issuer) -> None:
    assert "UNAUTHENTICATED" not in refusal(kernel.address, token=issuer.token(filler="x" * 100_000))
    assert is_accepted(kernel.address, token=issuer.token())


@pytest.mark.parametrize("name", [name for name, each in vars(Rpcs).items() if isinstance(each, Rpc)])
def test_no_rpc_is_performed_without_credentials(kernel: Kernel, name: str) -> None:
    rpc = vars(Rpcs)[name]
    answer = (lambda found: found) if isinstance(rpc, Unary) else next
    request = iter(()) if isinstance(rpc, BothStream) else rpc.request()
    with Client(kernel.address, token="unknown") as client, pytest.raises(KernelError, match="UNAUTHENTICATED"):
        answer(getattr(client, name)(request))


def test_no_body_is_read_before_authentication(kernel: Kernel) -> None:
    path, body = "/vesper.kernel.v1.KernelService/Submit", b"\xff" * (5 << 20)
    codes = {}
    for token in ("unknown", kernel_token(kernel)):
        with grpc.insecure_channel(kernel.address) as channel:
            call: Any = channel.unary_unary(path)
            sent = call.future(body, metadata=(("authorization", f"Bearer {token}"),), timeout=20)
            codes[token == "unknown"] = sent.code().name
    assert codes == {True: "UNAUTHENTICATED", False: "OUT_OF_RANGE"}


def kernel_token(kernel: Kernel) -> str:
    ((_, value),) = kernel.client._metadata()
    return value.removeprefix("Bearer ")


def test_named_keys_are_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = KernelSettings(keys=(KeySettings("planner", "planner_key"),))
    with pytest.raises(ConfigError, match="planner_key"):
        Kernel(settings=settings).start()
    monkeypatch.setenv("VESPER_SECRET_PLANNER_KEY", KEY)
    with Kernel(settings=settings, token=KEY) as kernel:
        assert is_accepted(kernel.address, token=KEY)
        assert "API key is not known" in refusal(kernel.address, token=KEY + "0")


# -- certificates -------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def secured(authority: Authority, **more: Any) -> KernelSettings:
    pair = authority.pair("127.0.0.1")
    return replace(KernelSettings(certificate=pair, key=pair, client_ca=authority.ca_file), **more)


def shown(pair: Path) -> dict[str, Any]:
    return {"certificate": pair, "key": pair}


def test_only_certificates_of_the_authority_connect(authority: Authority, tmp_path: Path) -> None:
    ca, good = authority.ca_file, authority.pair("planner")
    with Kernel(settings=secured(authority), ca=ca, **shown(good)) as kernel:
        assert kernel.client.get_process_counts(COUNTS).total == 0
        refused = [
            refusal(kernel.address, ca=ca),
            refusal(kernel.address, ca=ca, **shown(Authority(tmp_path).pair("planner"))),
            refusal(kernel.address, ca=ca, **shown(authority.pair("planner", days=-1))),
            refusal(kernel.address),
        ]
        assert {each.partition(":")[0] for each in refused} == {"UNAVAILABLE"}
        assert is_accepted(kernel.address, ca=ca, token="of a proxy", **shown(good))


def test_with_issuers_a_certificate_is_optional(authority: Authority, issuer: Issuer, tmp_path: Path) -> None:
    ca, good = authority.ca_file, authority.pair("planner")
    with Kernel(settings=secured(authority, jwt=(issuer.settings(),))) as kernel:
        where = kernel.address
        assert is_accepted(where, ca=ca, token=issuer.token())
        assert is_accepted(where, ca=ca, **shown(good))
        assert refusal(where, ca=ca).startswith("UNAUTHENTICATED")
        assert refusal(where, ca=ca, token=issuer.token(exp=1), **shown(good)).startswith("UNAUTHENTICATED")
        other = shown(Authority(tmp_path).pair("planner"))
        assert refusal(where, ca=ca, token=issuer.token(), **other).startswith("UNAVAILABLE")


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_certificate_needs_its_key_and_tls(kind: type[Client | AsyncClient], authority: Authority) -> None:
    pair = authority.pair("planner")
    for connection in ({"certificate": pair, "ca": pair}, {"key": pair, "tls": True}, shown(pair)):
        with pytest.raises(ValueError, match="a certificate needs its key"):
            kind("127.0.0.1:1", **connection)


# -- the program --------------------------------------------------------------------


def started(**settings: str) -> subprocess.Popen[str]:
    environment = {name: each for name, each in os.environ.items() if not name.startswith("VESPER_KERNEL_")}
    environment |= {f"VESPER_KERNEL_{name}": each for name, each in {"LISTEN": "127.0.0.1:0", **settings}.items()}
    return subprocess.Popen(
        [find_program()], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def is_refused(address: str, token: str) -> bool:
    with Client(address, token=token) as client:
        try:
            client.get_process_counts(COUNTS)
        except KernelError:
            return True
    return False


def test_key_sets_are_read_again(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "keys.json")
    row = {"issuer": ISSUER, "audience": AUDIENCE, "jwks": str(issuer.path), "refresh": 1}
    with started(JWT=json.dumps([row])) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            address = process.stdout.readline().removeprefix("listening on ").strip()
            with Client(address, token=issuer.token) as client:
                client.get_process_counts(COUNTS)
                old = issuer.token()
                issuer.rotate()

                eventually(lambda: is_refused(address, old))
                assert "signature is wrong" in refusal(address, token=old)
                client.get_process_counts(COUNTS)
                issuer.path.write_text("[]", encoding="utf-8")
                assert "the known keys stay" in process.stderr.readline()
                client.get_process_counts(COUNTS)
        finally:
            process.terminate()


ROW = {"issuer": ISSUER, "audience": AUDIENCE}


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"TOKENS": "kt,,other"}, "VESPER_KERNEL_TOKENS has an empty token"),
        ({"JWT": "{"}, "VESPER_KERNEL_JWT: a list in JSON"),
        ({"JWT": "[7]"}, "JWT[0]: an object"),
        ({"JWT": [{"issuer": ISSUER}]}, "JWT[0].audience: a string"),
        ({"JWT": [{**ROW, "jwks": "https://id.example/keys"}]}, "JWT[0].jwks: the path of a file"),
        ({"JWT": [{**ROW, "jwks": "KEYS", "algorithms": ["none"]}]}, "JWT.algorithms: `none` is unknown"),
        ({"JWT": [{**ROW, "jwks": "KEYS", "algorithms": ["RS256"]}]}, "has no key for its algorithms"),
        ({"JWT": [{**ROW, "jwks": "KEYS", "refresh": 0}]}, "JWT[0].refresh: seconds from 1"),
        ({"JWT": [{**ROW, "jwks": "KEYS", "tenant_claim": "org"}]}, "JWT[0].tenant_claim: is unknown"),
        ({"JWT": [{**ROW, "jwks": "KEYS"}] * 2}, "has an issuer twice"),
        ({"JWT": [{**ROW, "jwks": "/no/such/file"}]}, "/no/such/file cannot be read"),
        ({"JWT": [{**ROW, "jwks": "/dev/zero"}]}, "/dev/zero has more than 1048576 bytes"),
        ({"JWT": [{**ROW, "jwks": "/dev/null"}]}, "/dev/null is no key set"),
        ({"KEYS": [{"name": "planner", "sha256": "00"}]}, "KEYS.sha256: 64 hexadecimal digits"),
        ({"KEYS": [{"name": "", "sha256": "0" * 64}]}, "KEYS.name: name and tenant are 1 to 255"),
        ({"TLS_CLIENT_CA": "/dev/null"}, "TLS_CLIENT_CA needs VESPER_KERNEL_TLS_CERT"),
        ({"TLS_CLIENT_CA": "/dev/null", "TLS_CERT": "PAIR", "TLS_KEY": "PAIR"}, "certificates cannot be used"),
        ({"LISTEN": "0.0.0.0:0"}, "without authentication"),
    ],
    ids=lambda each: each[:40] if isinstance(each, str) else None,
)
def test_hostile_settings_are_refused(
    settings: dict[str, Any], message: str, issuer: Issuer, authority: Authority
) -> None:
    texts = {name: each if isinstance(each, str) else json.dumps(each) for name, each in settings.items()}
    pair = str(authority.pair("127.0.0.1"))
    texts = {name: each.replace('"KEYS"', json.dumps(str(issuer.path))) for name, each in texts.items()}
    with started(**{name: pair if each == "PAIR" else each for name, each in texts.items()}) as process:
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert message in errors
