"""Outside names, flags of absence and open records of random programs.

They have a random source of their own, so that they do not change the other draws of a program.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

from vesper.values.types import BOOLEAN, JSON, STRING, Enum, MapOf, OptionalOf, Outside, Type
from vesper.verify.programs.text import Draft, DrawnInput

_SHARE = 0.35
_NAMES = (
    "unitPrice", "Applicant age", "a", "b", "qty", "b.c", "x[0]", "ключ", "mood 😀", 'quo"te', "back\\slash",
    "n" * 128, "rest", "kind", "value", " leading", "trailing ", "null", "0", "$ref", "@id", "e\u0301", "é", "'", "a/b",
    "error", "Δ", "{x}", "# no", "- item", "yes: no", "?",
)  # fmt: skip
_FLAG = "is_absent"
_REST = "rest"


class OutsideSource:
    """Draws outside names for one program."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"outside {seed}")
        self.is_used = self._random.random() < _SHARE

    def names(self, inside: Iterable[str], avoid: Iterable[str] = ()) -> tuple[tuple[str, str], ...]:
        """Return outside names for some of the names, each used once outside, and none that is to be avoided."""
        inside = list(inside)
        if not self.is_used:
            return ()
        renamed = [name for name in inside if self._random.random() < 0.6]
        taken = {*avoid, *(name for name in inside if name not in renamed)}
        found: list[tuple[str, str]] = []
        for name in renamed:
            free = [each for each in _NAMES if each not in taken and each != name]
            outside = self._random.choice(free)
            taken.add(outside)
            found.append((name, outside))
        return tuple(found)

    def record(self, fields: tuple[tuple[str, Type], ...]) -> tuple[tuple[tuple[str, Type], ...], Outside | None]:
        """Return the fields of a record with a flag and undeclared keys, where drawn, and its outside names."""
        if not self.is_used:
            return fields, None
        flags: list[tuple[str, str]] = []
        found: list[tuple[str, Type]] = []
        for name, type_ in fields:
            found.append((name, type_))
            if isinstance(type_, OptionalOf) and not flags and self._random.random() < 0.7:
                flags.append((name, _FLAG))
                found.append((_FLAG, BOOLEAN))
        rest = _REST if self._random.random() < 0.3 else None
        if rest is not None:
            found.append((rest, MapOf(STRING, JSON)))
        hidden = {_FLAG, _REST}
        names = self.names((name for name, _ in found if name not in hidden), hidden)
        outside = Outside(names, tuple(flags), rest)
        return tuple(found), None if outside == Outside() else outside

    def enum(self, type_: Enum) -> Enum:
        """Return the enum with outside texts."""
        texts = dict(self.names(type_.members))
        listed = tuple(texts.get(member, member) for member in type_.members)
        return type_ if listed == type_.members else Enum(type_.members, listed)

    def is_enum(self) -> bool:
        return self.is_used and self._random.random() < 0.7

    def decorate(self, draft: Draft) -> Draft:
        """Return the draft with outside names of its inputs and outputs. Boolean ones become flags of optional ones."""
        if not self.is_used:
            return draft
        flags = self._draw_flag_pair((each.name, each.type) for each in draft.inputs if _can_pair_with_flag(each))
        hidden = [flag for _, flag in flags]
        names = dict(self.names((each.name for each in draft.inputs if each.name not in hidden), hidden))
        inputs = tuple(
            replace(each, outside=names.get(each.name), flag=dict(flags).get(each.name)) for each in draft.inputs
        )
        flags = self._draw_flag_pair(draft.outputs)
        hidden = [flag for _, flag in flags]
        listed = self.names((name for name, _ in draft.outputs if name not in hidden), hidden)
        return replace(draft, inputs=inputs, outside=Outside(listed, flags))

    def _draw_flag_pair(self, named: Iterable[tuple[str, Type]]) -> tuple[tuple[str, str], ...]:
        """Draw one pair of an optional field and a boolean field as its flag.

        Returns nothing without such fields, and in one draw of five.
        """
        listed = list(named)
        optional = [name for name, type_ in listed if isinstance(type_, OptionalOf)]
        flags = [name for name, type_ in listed if type_ == BOOLEAN]
        if not optional or not flags or self._random.random() < 0.2:
            return ()
        return ((self._random.choice(optional), self._random.choice(flags)),)


def _can_pair_with_flag(each: DrawnInput) -> bool:
    """Return whether an input can have a flag or be one. A flag is declared by its type alone."""
    return isinstance(each.type, OptionalOf) or (not each.constraints and each.default is None and each.written is None)
