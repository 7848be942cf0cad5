"""Servers for tests are real and not shared."""

from __future__ import annotations

import psycopg
import redis

from tests.support.servers import Postgres, Redis


def test_each_database_is_new(postgres: Postgres) -> None:
    for _ in range(2):
        with psycopg.connect(postgres.new_database()) as connection:
            connection.execute("CREATE TABLE only_here (x integer)")


def test_redis_stores_values(redis_server: Redis) -> None:
    client = redis.Redis.from_url(redis_server.url)
    client.set("servers", "1")
    assert client.get("servers") == b"1"
    client.close()
