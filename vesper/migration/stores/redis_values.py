"""Keys and values of the migration store in Redis.

Other programs may write to the same Redis: a value of another form is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

from vesper.migration.stores.store import Line, NodeKey, StoreError

PREFIX = "{vesper:migration}:"
"""Prefix with one hash tag for all keys. Redis Cluster is not supported."""


class Keys:
    """Names of the keys of one node."""

    __slots__ = (
        "divergences", "documents", "field", "history", "paths", "processes", "reserved", "scopes", "sets", "state",
        "turn",
    )  # fmt: skip

    def __init__(self, key: NodeKey) -> None:
        self.field = f"{quote(key.node, safe='')}:{quote(key.epoch, safe='')}"
        of_node = f"{PREFIX}{self.field}:"
        self.turn = f"{of_node}turn"
        self.reserved = f"{of_node}reserved"
        self.state = f"{of_node}state"
        self.processes = f"{of_node}processes"
        self.history = f"{of_node}history"
        self.divergences = f"{of_node}divergences"
        self.paths = f"{of_node}paths"
        self.documents = f"{of_node}documents"
        self.scopes = f"{of_node}scopes"
        self.sets = f"{of_node}set:"


def key_of(field: str) -> NodeKey:
    node, _, epoch = field.partition(":")
    return NodeKey(unquote(node), unquote(epoch))


def damage_error(what: str, name: str) -> StoreError:
    return StoreError(
        f"{name}: the migration state is damaged: somebody else writes keys that begin with `{PREFIX}` ({what})"
    )


def decode_text(found: bytes, name: str) -> str:
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise damage_error("what is no text", name) from None


def parse_count(found: bytes, name: str) -> int:
    if not found.isdigit():
        raise damage_error("a number that is none", name)
    return int(found)


def turn_and_text(found: bytes, name: str) -> tuple[int, str]:
    turn, _, text = found.partition(b"\n")
    return parse_count(turn, name), decode_text(text, name)


def number_and_time(found: bytes, name: str) -> tuple[int, int]:
    number, _, at_us = found.partition(b" ")
    return parse_count(number, name), parse_count(at_us, name)


def line_of(found: bytes, name: str) -> Line:
    try:
        number, text, hash_ = json.loads(found)
    except (ValueError, TypeError):
        raise damage_error("a line of the history", name) from None
    if (type(number), type(text), type(hash_)) != (int, str, str):
        raise damage_error("a line of the history", name)
    return Line(number, text, hash_)


def warnings_of(client: Any) -> Iterator[str]:
    """Yield the ways in which this Redis may lose data.

    A server that hides its configuration, as many hosted ones do, yields a warning about that.
    """
    from redis.exceptions import ResponseError

    try:
        found: dict[bytes | str, bytes | str] = {}
        for name in ("maxmemory-policy", "appendonly", "save"):
            found |= client.config_get(name)
    except ResponseError:
        yield (
            "it does not tell its configuration: `maxmemory-policy noeviction` and `appendonly yes` are needed, or "
            "migration state may be lost"
        )
        return
    settings = {_text(key): _text(value) for key, value in found.items()}
    if settings.get("maxmemory-policy") != "noeviction":
        yield (
            f"`maxmemory-policy` is {settings.get('maxmemory-policy')}: Redis may throw migration state away, the kill "
            "switch too; set it to noeviction"
        )
    if settings.get("appendonly") != "yes" and not settings.get("save"):
        yield (
            "it writes nothing to disk (`appendonly` is no, `save` is empty): after a restart every node begins anew, "
            "and the kill switch is off; set appendonly to yes"
        )
    elif settings.get("appendonly") != "yes":
        yield "it saves to disk now and then (`appendonly` is no): a crash loses the latest; set appendonly to yes"


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode()
