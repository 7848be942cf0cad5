"""Parts of inputs that a search changes one at a time, with values to try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from vesper.values.types import BOOLEAN, ArrayOf, Enum, MapOf, OptionalOf, Record, SetOf, Type
from vesper.verify.inputs.edges import Edges
from vesper.verify.solve.numbers import from_number, to_number

Path: TypeAlias = tuple[object, ...]
"""Name of an input, then names of fields, keys of maps and positions in arrays."""
_MAX_PARTS = 200
_MAX_ITEMS = 20
"""Items of one collection that are parts of their own."""
_MAX_NEAR = 160
_MAX_PLACES = 6
_DOUBLINGS = 48


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the inputs with its value."""

    path: Path
    type: Type
    value: Any

    @property
    def text(self) -> str:
        first, *rest = self.path
        steps = [f"[{each}]" if isinstance(each, int) else f".{each}" for each in rest]
        return f"{first}{''.join(steps)}"


def parts_of(types: Mapping[str, Type], inputs: Mapping[str, Any]) -> list[Part]:
    """Return the parts of inputs, outer ones before inner ones, at most some hundred."""
    found: list[Part] = []
    for name, type_ in types.items():
        for part in _parts((name,), type_, inputs[name]):
            if len(found) == _MAX_PARTS:
                return found
            found.append(part)
    return found


def _parts(path: Path, type_: Type, value: Any) -> Iterator[Part]:
    inner = type_.inner if isinstance(type_, OptionalOf) else type_
    if value is None or not isinstance(inner, Record) or isinstance(type_, OptionalOf):
        yield Part(path, type_, value)
    match inner, value:
        case Record(fields), dict():
            for name, of in fields:
                yield from _parts((*path, name), of, value[name])
        case ArrayOf(element), list():
            for position, each in enumerate(value[:_MAX_ITEMS]):
                yield from _parts((*path, position), element, each)
        case MapOf(_, of), dict():
            for key in list(value)[:_MAX_ITEMS]:
                yield from _parts((*path, key), of, value[key])


def replace_part(inputs: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """Return inputs with another value at a path."""
    return _replace_in(dict(inputs), path, value)  # type: ignore[no-any-return]


def _replace_in(whole: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    key, *rest = path
    if isinstance(whole, list):
        assert isinstance(key, int)
        return [*whole[:key], _replace_in(whole[key], tuple(rest), value), *whole[key + 1 :]]
    return whole | {key: _replace_in(whole[key], tuple(rest), value)}


def value_at(inputs: Mapping[str, Any], path: Path) -> Any:
    """Return the value at a path; raises LookupError where the inputs have no such part."""
    found: Any = inputs
    for key in path:
        match found, key:
            case list(), int():
                found = found[key]
            case dict(), _:
                found = found[key]
            case _:
                raise LookupError(key)
    return found


def other_values(part: Part, edges: Edges) -> list[object]:
    """Return values to try for a part that is not a number.

    Members of an enum, texts of the node, and collections with fewer and more items.
    """
    inner = part.type.inner if isinstance(part.type, OptionalOf) else part.type
    found: list[object] = []
    match inner, part.value:
        case Enum(members), _:
            found = [*(each for each in members if each != part.value)]
        case ((ArrayOf() | SetOf() | MapOf()), (list() | frozenset() | set() | dict())):
            found = list(_other_collections(part.value))
        case _, None:
            found = edges.values(inner)[:_MAX_ITEMS]
        case _, bool() if inner == BOOLEAN:
            found = [not part.value]
        case _, str():
            found = [*(each for each in edges.strings[:_MAX_NEAR] if each != part.value)]
    if isinstance(part.type, OptionalOf) and part.value is not None:
        found.append(None)
    return found


def _other_collections(value: Any) -> Iterator[object]:
    match value:
        case list() if value:
            yield from (value[:position] + value[position + 1 :] for position in range(len(value))[:_MAX_ITEMS])
            yield [*value, value[-1]]
        case dict():
            for key in list(value)[:_MAX_ITEMS]:
                yield {each: found for each, found in value.items() if each != key}
        case frozenset() | set():
            yield from (value - {member} for member in sorted(value, key=repr)[:_MAX_ITEMS])


def unit_of(part: Part, edges: Edges) -> Fraction:
    """Return the distance between neighbouring values of a part.

    Of decimals, it is one unit of the last place that occurs in the input or in the node.
    """
    if isinstance(part.value, float):
        return max(abs(Fraction(part.value)) / 2**40, Fraction(1, 2**40))
    if not isinstance(part.value, Decimal):
        return Fraction(1)
    places = [-int(each.as_tuple().exponent) for each in (part.value, *edges.decimals)]
    return Fraction(1, 10 ** min(max(places), max(_MAX_PLACES, places[0])))


def near_numbers(part: Part, unit: Fraction, edges: Edges, boundaries: list[Fraction]) -> list[Fraction]:
    """Return numbers to try: boundaries of comparisons, literals and growing steps, with neighbours, nearest first."""
    number = to_number(part.value)
    assert number is not None
    inner = part.type.inner if isinstance(part.type, OptionalOf) else part.type
    known = [each // unit * unit for each in boundaries]
    known += [found for each in edges.values(inner) if (found := to_number(each)) is not None]
    near = {each + step for each in known for step in (-unit, Fraction(0), unit, 2 * unit)}
    near |= {number + sign * unit * 2**power for power in range(_DOUBLINGS) for sign in (-1, 1)}
    return sorted(near - {number}, key=lambda each: (abs(each - number), each))[:_MAX_NEAR]


def number_like(given: object, number: Fraction) -> object | None:
    """Return a number in the form of the part's value; None where that form cannot hold it exactly."""
    found = from_number(given, number)
    return found if found is not None and (isinstance(found, float) or to_number(found) == number) else None
