"""Packs: the facts of providers below the settings of a file, and failures by their rules."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.web import says
from tests.unit.effects.http.helpers import Side, ask_of, failure
from vesper.effects.http.credentials import AuthHeader, AwsSigV4, Basic
from vesper.effects.http.provider_packs import PACKS
from vesper.effects.http.settings import HttpSettings
from vesper.effects.http.webhooks import pack_scheme
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError, Table


def settings(values: dict[str, object], folder: Path | None = None) -> HttpSettings:
    return HttpSettings.from_table("shop", Table("vesper.toml: providers.shop", values), folder)


@pytest.mark.parametrize("name", sorted(each.stem for each in PACKS.glob("*.toml")))
def test_every_pack_can_be_used(name: str) -> None:
    given: dict[str, object] = {"extends": name}
    if name.startswith("aws-"):
        given |= {"base_url": "https://sqs.eu-central-1.amazonaws.com", "auth": {"region": "eu-central-1"}}
    found = settings(given)
    assert found.pack == f"{name} 1"
    assert found.auth is not None
    assert f"pack {name} 1" in str(found)
    if not name.startswith("aws-"):
        assert pack_scheme(name).fields["name"] == name


def test_settings_of_the_file_win() -> None:
    found = settings({"extends": "stripe", "base_url": "https://stripe.internal", "key_ttl": "1h", "timeout": "5s"})
    assert (found.base.origin.host, found.key_ttl, found.timeout, found.body) == ("stripe.internal", 3600, 5, "form")
    assert isinstance(found.auth, AuthHeader)
    replaced = settings({"extends": "stripe", "auth": {"value": "{secret:mine}"}}).auth
    assert isinstance(replaced, AuthHeader)
    assert (replaced.name, replaced.value.names) == ("Authorization", ("mine",))
    other = settings({"extends": "stripe", "auth": {"basic": {"user": "{secret:mine}", "password": ""}}}).auth
    assert isinstance(other, Basic)
    completed = settings({"extends": "aws-s3", "base_url": "https://b.example", "auth": {"region": "eu-west-1"}}).auth
    assert isinstance(completed, AwsSigV4)
    assert (completed.region, completed.service) == ("eu-west-1", "s3")
    joined = settings({"extends": "github", "headers": {"X-GitHub-Api-Version": "2026-01-01", "X-A": "1"}}).headers
    assert dict(joined)["X-GitHub-Api-Version"].texts == ("2026-01-01",)
    assert {name for name, _ in joined} == {"Accept", "X-GitHub-Api-Version", "X-A"}


def test_rules_of_the_file_come_first() -> None:
    rule = {"status": 409, "code": "http_410"}
    assert settings({"extends": "stripe", "failures": [rule]}).failures[0].code == "http_410"


def test_an_own_pack_precedes_one_of_vesper(tmp_path: Path) -> None:
    (tmp_path / "packs").mkdir()
    pack = tmp_path / "packs" / "stripe.toml"
    pack.write_text('version = 7\n[provider]\nbase_url = "https://pay.internal"\n')
    assert str(settings({"extends": "stripe"}, tmp_path)).startswith("https://pay.internal, pack stripe 7")
    pack.chmod(0o666)
    with pytest.raises(ConfigError, match=r"packs/stripe\.toml: .*is not trusted"):
        settings({"extends": "stripe"}, tmp_path)


@pytest.mark.parametrize(
    "text, problem",
    [
        ("version = 0\n[provider]", "version: a number from 1"),
        ('version = 1\nversoin = 2\n[provider]\nbase_url = "https://x"', "versoin: no such setting"),
        ('version = 1\n[provider]\nextends = "stripe"', "provider.extends: a pack extends no other pack"),
        ("version = ", "this pack cannot be read"),
        ('version = 1\n[provider]\nbase_url = "ftp://x"', r"base_url: .*\(with the pack own 1, .*/packs/own.toml\)"),
    ],
)
def test_a_pack_that_cannot_be_used_is_named(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "own.toml").write_text(text)
    with pytest.raises(ConfigError, match=problem):
        settings({"extends": "own"}, tmp_path)


@pytest.mark.parametrize(
    "values, problem",
    [
        ({"extends": "strpe"}, "extends: there is no pack `strpe`.*did you mean `stripe`?"),
        ({"extends": "../../x"}, "extends: there is no pack"),
        ({"extends": "aws-s3"}, "`base_url` is missing"),
        ({"extends": "stripe", "timeout": "x"}, r"timeout: a duration .*not `x`$"),
        (
            {"extends": "stripe", "failures": [{"status": 200, "code": "http_400"}]},
            r"failures.*status: every answer",
        ),
        (
            {"extends": "stripe", "failures": [{"status": 409, "code": "declined"}]},
            r"failures.*code: `unavailable`",
        ),
    ],
)
def test_settings_that_cannot_be_used(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        settings(values)


@pytest.mark.parametrize(
    "pack, status, body, headers, code",
    [
        ("stripe", 402, {"error": {"type": "card_error"}}, {}, "http_402"),
        ("stripe", 409, {"error": {"code": "idempotency_key_in_use"}}, {}, "unavailable"),
        ("stripe", 409, {}, {"Stripe-Should-Retry": "false"}, "http_409"),
        ("stripe", 400, {"error": {"type": "idempotency_error"}}, {}, "http_409"),
        ("stripe", 400, {"error": "idempotency_error"}, {}, "http_400"),
        ("stripe", 429, {"error": {"code": "lock_timeout"}}, {}, "unavailable"),
        ("stripe", 429, {"error": {"code": "rate_limit"}}, {"Retry-After": "3"}, "http_429"),
        ("github", 403, {}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4102444800"}, "http_429"),
        ("github", 403, {}, {"Retry-After": "30"}, "http_429"),
        ("github", 403, {}, {"X-RateLimit-Remaining": "1"}, "http_403"),
        ("slack", 200, {"ok": False, "error": "ratelimited"}, {}, "http_429"),
        ("slack", 200, {"ok": False, "error": "fatal_error"}, {}, "http_500"),
        ("slack", 200, {"ok": False, "error": "anything"}, {}, "http_400"),
    ],
)
def test_failures_of_providers(
    side: Side, pack: str, status: int, body: object, headers: dict[str, str], code: str
) -> None:
    side.web.on("/it", says(body, status, headers))
    performer = side.performer(extends=pack, auth={"value": "{secret:api_key}"})
    failed = failure(performer, ask_of())
    assert failed.code == code
    assert (f"`{code}` by the pack {pack} 1" in failed.message) == (
        code != f"http_{status}" or "Should" in str(headers)
    )
    assert failed.may_have_happened == ("fatal_error" in str(body))
    expected = 60 if "X-RateLimit-Reset" in headers else float(headers.get("Retry-After", "0"))
    assert (failed.retry_after or 0) == expected


def test_a_good_answer_of_slack(side: Side) -> None:
    side.web.on("/it", says({"ok": True}))
    performer = side.performer(extends="slack", auth={"value": "{secret:api_key}"})
    assert performer.perform(ask_of()) == {"ok": True}


def test_a_time_of_reset_is_awaited(side: Side) -> None:
    reset = str(int(time.time()) + 20)
    side.web.on("/it", says({}, 429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}))
    failed = failure(side.performer(extends="github", auth={"value": "{secret:api_key}"}), ask_of())
    assert 0 < (failed.retry_after or 0) <= 20


def test_a_provider_without_keys_takes_no_keyed_step(side: Side) -> None:
    performer = side.performer(extends="slack", auth={"value": "{secret:api_key}"})
    failed = failure(performer, ask_of(method="POST", effect_class="keyed", key="k1", body={}))
    assert failed.message.startswith("nothing was sent: `shop` recognises no repeated request")
    assert side.web.connections == 0


def test_a_rule_holds_for_a_probe(side: Side) -> None:
    side.web.on("/made_under/k1", says({"ok": False}))
    probe = {"endpoint": "/made_under/{key}"}
    performer = side.performer(extends="slack", auth={"value": "{secret:api_key}"}, key_header="X-Key", probe=probe)
    with pytest.raises(EffectFailed) as caught:
        performer.probe(ask_of(method="POST", effect_class="probe", key="k1", body={}))
    assert caught.value.code == "http_400"
