"""Decisions as records: what the journal holds of them, and what a replay reads back.

A record is a flat mapping of names to whole numbers and texts; `decision` names the class. It is read strictly: a
record that somebody changed, or that a later version wrote, is refused and not half understood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import ClassVar, TypeAlias, TypeVar

from vesper.policies.settings import PolicyError

Record: TypeAlias = dict[str, int | str]

_KINDS: dict[str, tuple[type, bool]] = {
    "int": (int, True),
    "str": (str, True),
    "int | None": (int, False),
}
"""The types that a field may be declared with: the kind of its value, and whether a record must have it."""


class Decision:
    """What a machine decided. Subclasses are frozen dataclasses whose fields are whole numbers and texts."""

    __slots__ = ()
    decision: ClassVar[str]
    """What the record calls it."""

    def to_record(self) -> Record:
        given = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return {"decision": self.decision, **{name: value for name, value in given.items() if value is not None}}


_Decided = TypeVar("_Decided", bound=Decision)


def from_record(record: Mapping[str, object], classes: Sequence[type[_Decided]]) -> _Decided:
    """The decision that a record holds, which must be of one of these classes. Raises `PolicyError`."""
    name = record.get("decision")
    found = next((each for each in classes if each.decision == name), None)
    if found is None:
        expected = ", ".join(f"`{each.decision}`" for each in classes)
        raise PolicyError(f"record of a policy: `decision` must be one of {expected}, not {name!r}")
    given = {key: value for key, value in record.items() if key != "decision"}
    for each in fields(found):  # type: ignore[arg-type]
        kind, is_needed = _KINDS[str(each.type)]
        value = given.get(each.name)
        if each.name in given and type(value) is not kind:
            raise PolicyError(f"record of the decision `{name}`: `{each.name}` must be {_said(kind)}, not {value!r}")
        if each.name not in given and is_needed:
            raise PolicyError(f"record of the decision `{name}`: `{each.name}` is missing")
    known = {each.name for each in fields(found)}  # type: ignore[arg-type]
    for key in given:
        if key not in known:
            raise PolicyError(f"record of the decision `{name}`: there is no `{key}` in it")
    return found(**given)


def _said(kind: type) -> str:
    return "a whole number" if kind is int else "a text"
