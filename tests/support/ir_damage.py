"""Damage to IR documents: one small change of their structure, drawn from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from vesper.language.ir.encode import canonical_json

Place = tuple[Any, str | int]
"""A list or an object, and the index or key of a value in it."""


def damage(ir: bytes, source: random.Random) -> bytes:
    """Return the document after one change; one in ten changes bytes instead of structure."""
    if source.random() < 0.1:
        return source.choice(_BYTES)(ir, source)
    document = json.loads(ir)
    part = source.choice(("semantics", "semantics", "semantics", "semantics", "source", "taint"))
    places = list(_places(document.get(part, document["semantics"])))
    source.choice(_STRUCTURE)(places, source)
    return canonical_json(document)


def _places(value: Any) -> Iterator[Place]:
    """Yield every value below this one, parents first."""
    if isinstance(value, (list, dict)):
        for key in range(len(value)) if isinstance(value, list) else list(value):
            yield value, key
            yield from _places(value[key])


def _of_kind(places: list[Place], kind: type) -> list[Place]:
    return [place for place in places if type(place[0][place[1]]) is kind]


def _change_number(places: list[Place], source: random.Random) -> None:
    if found := _of_kind(places, int):
        owner, key = source.choice(found)
        owner[key] = source.choice((owner[key] - 1, owner[key] + 1, -1, 0, 65_535, 65_536, 1_000_001, 2**63 - 1))


def _copy_alike(places: list[Place], source: random.Random) -> None:
    """Replace a value by another one of its kind: a type by a type, a name by a name, an index by an index."""
    kind = source.choice((int, str, str, dict, list))
    if found := _of_kind(places, kind):
        (owner, key), (other, from_key) = source.choice(found), source.choice(found)
        owner[key] = json.loads(json.dumps(other[from_key]))


def _copy_field(places: list[Place], source: random.Random) -> None:
    """Replace a value by that of the same key elsewhere."""
    owner, key = source.choice(places)
    alike = [(other, each) for other, each in places if each == key and type(other) is type(owner)]
    other, from_key = source.choice(alike)
    owner[key] = json.loads(json.dumps(other[from_key]))


def _change_kind(places: list[Place], source: random.Random) -> None:
    owner, key = source.choice(places)
    owner[key] = source.choice((None, True, False, 0, 1, "", "a", "integer", [], {}, [0], {"array": "integer"}))


def _remove(places: list[Place], source: random.Random) -> None:
    owner, key = source.choice(places)
    del owner[key]


def _repeat(places: list[Place], source: random.Random) -> None:
    if found := [owner for owner, _ in places if isinstance(owner, list)]:
        owner = source.choice(found)
        owner.insert(source.randrange(len(owner) + 1), source.choice(owner))


def _exchange(places: list[Place], source: random.Random) -> None:
    owner, key = source.choice(places)
    other = source.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
    owner[key], owner[other] = owner[other], owner[key]


def _add_field(places: list[Place], source: random.Random) -> None:
    if found := _of_kind(places, dict):
        owner, key = source.choice(found)
        owner[key][source.choice(("", "a", "of", "value", "with", "where", "key", "zz"))] = source.choice(
            (0, 1, "a", [])
        )


def _rename(places: list[Place], source: random.Random) -> None:
    """Replace the key of a value by another key of the document, such as the tag of an expression."""
    if found := [(owner, key) for owner, key in places if isinstance(owner, dict)]:
        owner, key = source.choice(found)
        owner[source.choice(found)[1]] = owner.pop(key)


def _cut(ir: bytes, source: random.Random) -> bytes:
    return ir[: source.randrange(len(ir))]


def _flip(ir: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(ir))
    return ir[:at] + bytes([ir[at] ^ (1 << source.randrange(8))]) + ir[at + 1 :]


_STRUCTURE: tuple[Callable[[list[Place], random.Random], None], ...] = (
    _change_number, _copy_alike, _copy_alike, _copy_field, _copy_field, _change_kind, _remove, _repeat, _exchange,
    _add_field, _rename,
)  # fmt: skip
_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (_cut, _flip)
