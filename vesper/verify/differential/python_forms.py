"""Python forms of outputs: callers of an adopted function must get the same types from the node.

A set is a `set` here, as functions return it; elsewhere it is a frozenset. Everything else has the form in which a node
returns it: an array is a list, a timestamp is in UTC, a missing optional is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from vesper.values.types import ArrayOf, MapOf, OptionalOf, Record, Type


@dataclass(frozen=True, slots=True)
class OtherForm:
    """A difference in form between a value of the function and that of the node, without the values."""

    where: str
    function: str
    node: str

    @property
    def code(self) -> str:
        """The difference as the code of a failure: `list_for_set`."""
        return f"{self.function}_for_{self.node}"


def field_names(types: Iterable[Type]) -> frozenset[str]:
    """Return the names of all record fields in the types."""
    found: set[str] = set()
    waiting = list(types)
    while waiting:
        match waiting.pop():
            case Record(fields):
                found.update(name for name, _ in fields)
                waiting += [inner for _, inner in fields]
            case OptionalOf(inner) | ArrayOf(inner) | MapOf(_, inner):
                waiting.append(inner)
            case _:
                pass
    return frozenset(found)


def to_python(value: object) -> object:
    """Return an output of the node as a caller of the function gets it."""
    match value:
        case frozenset():
            return set(value)
        case list():
            return [to_python(item) for item in value]
        case dict():
            return {key: to_python(item) for key, item in value.items()}
        case _:
            return value


def first_other_form(given: object, value: object, names: frozenset[str], at: str = "outputs") -> OtherForm | None:
    """Return the first difference in form between the function's value and the node's, which are equal.

    `names` are the declared fields. Other keys of a mapping are values, which a place must not show.
    """
    if isinstance(given, Mapping) and isinstance(value, dict):
        return _in_mapping(given, value, names, at)
    kind, wanted = _form_of(given), _form_of(to_python(value))
    if kind != wanted:
        return OtherForm(at, kind, wanted)
    if isinstance(value, list):
        assert isinstance(given, list)
        pairs = zip(given, value, strict=True)
        found = (first_other_form(one, other, names, f"{at}[{number}]") for number, (one, other) in enumerate(pairs))
        return next(filter(None, found), None)
    return None


def _in_mapping(
    given: Mapping[object, object], value: dict[object, object], names: frozenset[str], at: str
) -> OtherForm | None:
    if not isinstance(given, dict):
        return OtherForm(at, type(given).__name__, "dict")
    for number, (key, inner) in enumerate(value.items()):
        inside = f"{at}.{key}" if key in names else f"{at}[{number}]"
        if key not in given:
            return OtherForm(inside, "nothing", _form_of(inner))
        found = first_other_form(given[key], inner, names, inside)
        if found is not None:
            return found
    return None


def _form_of(value: object) -> str:
    if isinstance(value, datetime):
        offset = value.utcoffset()
        return "utc_time" if offset == timedelta(0) else "offset_time"
    return "none" if value is None else type(value).__name__
