"""Where two values differ, by their declared type: the innermost fields and items.

Values are equal where `vesper.values.model.same` holds: the scale of a decimal counts, as do the sign of a zero and the
order of a map. Only the order of a record's fields does not, which records lose when they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vesper.values.model import same
from vesper.values.types import JSON, ArrayOf, MapOf, OptionalOf, Record, Type


@dataclass(frozen=True, slots=True)
class ValuePair:
    """A place and its value on each side: `outputs.lines[2].total`."""

    where: str
    left: object
    right: object


def differing_fields(
    types: Mapping[str, Type], left: Mapping[str, object], right: Mapping[str, object], at: str
) -> Iterator[ValuePair]:
    """Yield the locations where two records differ, in the declared order of fields."""
    if set(left) != set(types) or set(right) != set(types):
        # The engine returned undeclared fields, whose names may hold values: only declared names are reported.
        missing = next((name for name in types if (name in left) != (name in right)), None)
        yield ValuePair(at if missing is None else f"{at}.{missing}", left, right)
        return
    for name, type_ in types.items():
        yield from differing_values(type_, left[name], right[name], f"{at}.{name}")


def differing_values(type_: Type, left: object, right: object, at: str) -> Iterator[ValuePair]:
    """Yield the innermost locations where two values differ. Entries of a map are numbered: their keys are values."""
    if same(left, right):
        return
    match type_, left, right:
        case OptionalOf(inner), _, _ if left is not None and right is not None:
            yield from differing_values(inner, left, right, at)
        case ArrayOf(element), list(), list():
            for number, (one, other) in enumerate(zip(left, right, strict=False)):
                yield from differing_values(element, one, other, f"{at}[{number}]")
            if len(left) != len(right):
                yield ValuePair(at, left, right)
        case MapOf(_, of), dict(), dict() if same(list(left), list(right)):
            for number, key in enumerate(left):
                yield from differing_values(of, left[key], right[key], f"{at}[{number}]")
        case Record(fields), dict(), dict():
            yield from differing_fields(dict(fields), left, right, at)
        case _ if type_ != JSON or not is_alike(left, right):
            yield ValuePair(at, left, right)


def is_alike(left: object, right: object) -> bool:
    """Return whether two values of unknown type are equal, as `same` does.

    A dict may be a record, so the order of its keys is ignored.
    """
    if isinstance(left, dict) and isinstance(right, dict):
        names, others = ({(type(key), key) for key in each} for each in (left, right))
        return names == others and all(is_alike(value, right[key]) for key, value in left.items())
    if type(left) is type(right) and isinstance(left, list | tuple):
        assert isinstance(right, list | tuple)
        return len(left) == len(right) and all(is_alike(one, other) for one, other in zip(left, right, strict=True))
    return same(left, right)
