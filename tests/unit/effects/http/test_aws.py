"""AWS Signature Version 4: the published vectors, and servers that verify requests themselves."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.web import Got, Wire, message
from tests.unit.effects.aws_signatures import is_signed
from tests.unit.effects.http.helpers import SECRETS, Side, ask_of, failure
from vesper._direct import sign_aws_request

_KEY = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
_S3_KEY = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
_AT = int(datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp()) * 1_000_000
_S3_AT = int(datetime(2013, 5, 24, tzinfo=UTC).timestamp()) * 1_000_000
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    "method, target, headers, body, signature",
    [
        ("GET", "/", {}, b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "/", {}, b"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            {},
            b"",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "GET",
            "/?%E1%88%B4=bar",
            {},
            b"",
            "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
        ),
        (
            "GET",
            "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            {},
            b"",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
        ),
        (
            "GET",
            "/",
            {"My-Header1": " value1", "My-Header2": ' "a   b   c"'},
            b"",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        ),
        (
            "POST",
            "/",
            {"My-Header1": "VALUE1"},
            b"",
            "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
        ),
        (
            "POST",
            "/",
            _FORM,
            b"Param1=value1",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
    ],
)
def test_the_vectors_of_the_test_suite(
    method: str, target: str, headers: dict[str, str], body: bytes, signature: str
) -> None:
    url = f"https://example.amazonaws.com{target}"
    signed = sign_aws_request(method, url, list(headers.items()), body, "us-east-1", "service", *_KEY, None, _AT)
    found = dict(signed)
    assert found["x-amz-date"] == "20150830T123600Z"
    names = ";".join(sorted(["host", "x-amz-date", *map(str.lower, headers)]))
    credential = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request"
    assert found["authorization"] == (
        f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
    )


@pytest.mark.parametrize(
    "method, url, headers, body, signature",
    [
        (
            "GET",
            "/test.txt",
            {"Range": "bytes=0-9"},
            b"",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "PUT",
            "/test$file.text",
            {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
            b"Welcome to Amazon S3.",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        ("GET", "/?lifecycle", {}, b"", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        (
            "GET",
            "/?max-keys=2&prefix=J",
            {},
            b"",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_the_examples_of_s3(method: str, url: str, headers: dict[str, str], body: bytes, signature: str) -> None:
    place = f"https://examplebucket.s3.amazonaws.com{url}"
    found = dict(
        sign_aws_request(method, place, list(headers.items()), body, "us-east-1", "s3", *_S3_KEY, None, _S3_AT)
    )
    assert found["authorization"].endswith(f"Signature={signature}")


def _verifies(got: Got, wire: Wire) -> None:
    is_known = is_signed(got, "AKIAEXAMPLE", SECRETS["other"])
    wire.send(message(200 if is_known else 403, b'{"MessageId": "m1"}'))


def _auth(service: str, **values: str) -> dict[str, str]:
    keys = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "{secret:other}"}
    return {"type": "aws_sigv4", "region": "eu-central-1", "service": service, **keys, **values}


@pytest.mark.parametrize("service", ["s3", "sqs"])
@pytest.mark.parametrize("endpoint", ["/reports/2026%20Q1/a%2Fb~c.json", "/", ""])
def test_a_server_that_verifies_signatures(side: Side, service: str, endpoint: str) -> None:
    side.web.answer = _verifies  # type: ignore[method-assign]  # every path
    performer = side.performer(auth=_auth(service), headers={"Content-Type": "application/x-amz-json-1.0"})
    query = {"list-type": "2", "prefix": "a b/+ä"}
    ask = ask_of(endpoint, "PUT", query=query, body={"text": "grüße"}, headers={"x_amz_target": "AmazonSQS.Send"})
    assert performer.perform(ask) == {"MessageId": "m1"}
    got = side.web.got[0]
    assert ("x-amz-content-sha256" in got.headers) == (service == "s3")
    assert "x-amz-target" in got.headers["authorization"]
    performer.perform(ask_of(endpoint))


def test_a_session_token_is_signed_and_never_shown(side: Side) -> None:
    def refuses(got: Got, wire: Wire) -> None:
        assert is_signed(got, "AKIAEXAMPLE", SECRETS["other"])
        wire.send(message(403, got.headers["x-amz-security-token"].encode()))

    side.web.on("/it", refuses)
    performer = side.performer(auth=_auth("sqs", session_token="{secret:api_key}"))
    failed = failure(performer, ask_of())
    assert failed.code == "http_403"
    assert "secret:api_key" in failed.message
    assert "x-amz-security-token" in side.web.got[0].headers["authorization"]


def test_a_node_cannot_set_headers_of_the_signature(side: Side) -> None:
    for header in ("authorization", "x_amz_date", "x_amz_content_sha256", "x_amz_security_token"):
        failed = failure(side.performer(auth=_auth("s3")), ask_of(headers={header: "x"}))
        assert "so a node cannot set it" in failed.message
    assert side.web.connections == 0
