"""A server, and performers that ask it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest

from tests.support.web import Web
from vesper.effects.http.performer import HttpPerformer, HttpSettings, http_performer
from vesper.effects.performer import Ask, EffectFailed
from vesper.effects.settings import Table
from vesper.values.model import Value
from vesper.values.types import JSON, Type

SECRETS = {"api_key": "sk_live_0123456789", "other": "very secret/text+"}
PATIENCE = 20.0
"""Seconds that nothing here may take, on a machine that has other things to do."""


def secret(name: str) -> str:
    if name not in SECRETS:
        raise EffectFailed("not_found", f"there is no secret `{name}`")
    return SECRETS[name]


def settings_of(values: Mapping[str, object], name: str = "shop") -> HttpSettings:
    return HttpSettings.from_table(name, Table(f"vesper.toml: providers.{name}", values))


REFERENCES = {f"secret:{name}": name for name in ("api_key", "other", "one", "mine", "absent", "unknown")}
"""What the execution was given. Real ones end in what nobody can guess; to whoever replaces them that is all one."""


def ask_of(
    endpoint: str = "/it",
    method: str = "GET",
    gives: Type = JSON,
    effect_class: str = "read",
    key: str | None = None,
    timeout: float | None = PATIENCE,
    provider: str = "shop",
    secrets: Callable[[str], str] = secret,
    **arguments: object,
) -> Ask:
    given: dict[str, Value] = {"endpoint": endpoint, **arguments}  # type: ignore[dict-item]
    return Ask(
        execution="run_1",
        path="charge[2]",
        effect="http_request",
        effect_class=effect_class,
        fixed={"provider": provider, "method": method},
        arguments=given,
        gives=gives,
        key=key,
        timeout=timeout,
        secret=secrets,
        references=REFERENCES,
    )


class Side:
    """Our side of a server: performers with its address, closed at the end."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self.names: dict[str, list[str]] = {}
        """Where names lead; whatever is not here leads to the server."""
        self._made: list[HttpPerformer] = []

    def performer(self, **values: object) -> HttpPerformer:
        given = {"base_url": self.web.url, "allow_private_addresses": True} | values
        made = http_performer({"shop": settings_of(given)}, secret, self.resolve)
        self._made.append(made)
        return made

    def resolve(self, host: str, port: int) -> list[str]:
        return self.names.get(host, ["127.0.0.1"])

    def close(self) -> None:
        for each in self._made:
            each.close()


def failure(performer: HttpPerformer, ask: Ask) -> EffectFailed:
    """What an effect fails with, in bounded time and without a secret in its message."""
    begun = time.monotonic()
    with pytest.raises(EffectFailed) as caught:
        performer.perform(ask)
    assert time.monotonic() - begun < PATIENCE
    for text in SECRETS.values():
        assert text not in caught.value.message
    assert len(caught.value.message) < 700
    return caught.value
