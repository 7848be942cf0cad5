"""Decisions as records: what the journal holds of them."""

from __future__ import annotations

from dataclasses import fields
from typing import ClassVar, TypeAlias

Record: TypeAlias = dict[str, int | str]


class Decision:
    """What a machine decided. Subclasses are frozen dataclasses whose fields are whole numbers and texts."""

    __slots__ = ()
    decision: ClassVar[str]
    """What the record calls it."""

    def to_record(self) -> Record:
        given = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return {"decision": self.decision, **{name: value for name, value in given.items() if value is not None}}
