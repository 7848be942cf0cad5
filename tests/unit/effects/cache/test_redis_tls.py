"""`rediss://`: encrypted, and only with a server whose certificate is good for its name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.tls_redis import TlsRedis
from tests.unit.effects.ask_of import ask_of, failure, table
from vesper.effects.cache.performer import CachePerformer, CacheSettings
from vesper.values.types import INTEGER, OptionalOf


@pytest.fixture(scope="module")
def server() -> Iterator[TlsRedis]:
    found = TlsRedis()
    yield found
    found.remove()


def performer(url: str) -> CachePerformer:
    return CachePerformer({"main": CacheSettings.from_table("main", table("caches.main", url=url))})


def test_a_certificate_that_is_known(server: TlsRedis) -> None:
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
def test_a_server_that_is_not_the_one_is_not_used(server: TlsRedis, url: str) -> None:
    cache = performer(url.format(port=server.port, certificate=server.certificate))
    ask = ask_of("cache_put", {"cache": "main", "ttl_us": "60000000"}, {"key": "x", "value": 8})
    assert failure("cache_put", lambda: cache.perform(ask)).code == "unavailable"
