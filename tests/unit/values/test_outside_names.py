"""Types and values by their outside names."""

from __future__ import annotations

from typing import Any

import pytest

from vesper.language.ir.type_json import type_from_json, type_to_json
from vesper.values.outside_names import is_outside_name, spelled_type, to_inside, to_outside
from vesper.values.types import (
    BOOLEAN,
    INTEGER,
    JSON,
    STRING,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Outside,
    Record,
    SetOf,
    Type,
    declared_type,
    type_text,
)

COLOUR = Enum(("red", "b'l\"ue"), ("R", "b'l\"ue"))
LINE = Record(
    (("a", OptionalOf(COLOUR)), ("a_absent", BOOLEAN), ("n", INTEGER), ("rest", MapOf(STRING, JSON))),
    "Line",
    Outside((("a", 'the "A" \\ ü;$'),), (("a", "a_absent"),), "rest"),
)
TYPES = [COLOUR, LINE, ArrayOf(LINE), MapOf(COLOUR, OptionalOf(LINE)), SetOf(COLOUR)]


@pytest.mark.parametrize("type_", TYPES)
def test_a_type_is_read_back_from_its_json(type_: Type) -> None:
    assert type_to_json(type_from_json(type_to_json(type_))) == type_to_json(type_)


def test_the_text_of_a_type_keeps_its_outside_names() -> None:
    colour = Enum(("red", "light blue"), ("R", "light blue"))
    line = Record((("c", colour), *LINE.fields[1:]), None, Outside((("c", "x y"),), (), "rest"))
    assert type_text(line) == (
        "{c@x$20;y: enum[red@R, 'light blue'], a_absent: boolean, n: integer, *rest: map<string, json>}"
    )
    assert type_to_json(declared_type(type_text(line))) == type_to_json(line)
    flagged = Record(LINE.fields[1:], None, None)
    assert type_text(flagged, has_outside=False) == "{a_absent: boolean, n: integer, rest: map<string, json>}"


def test_outside_names_take_no_part_in_equality() -> None:
    assert Enum(("a",), ("b",)) == Enum(("a",))
    assert Record(LINE.fields) == LINE
    assert len({Record(LINE.fields), LINE}) == 1


def test_a_type_without_outside_names_is_spelled_as_itself() -> None:
    plain = MapOf(STRING, ArrayOf(Record((("a", Enum(("x",))),))))
    assert spelled_type(plain) is plain


VALUES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"a": "red", "a_absent": False, "n": 1, "rest": {"x": 2}}, {'the "A" \\ ü;$': "R", "n": 1, "x": 2}),
    ({"a": None, "a_absent": False, "n": 1, "rest": {}}, {'the "A" \\ ü;$': None, "n": 1}),
    ({"a": None, "a_absent": True, "n": 1, "rest": {}}, {"n": 1}),
]


@pytest.mark.parametrize("inside, outside", VALUES)
def test_values_are_converted_both_ways(inside: dict[str, Any], outside: dict[str, Any]) -> None:
    assert to_outside(LINE, inside) == outside
    assert to_inside(LINE, outside) == inside
    columns = to_outside(ArrayOf(LINE), [inside], columns=True)
    assert columns[0]["a_absent"] is inside["a_absent"]
    assert to_inside(ArrayOf(LINE), columns, columns=True) == [inside]


def test_an_undeclared_key_is_never_written_over_a_field() -> None:
    value = {"a": None, "a_absent": True, "n": 1, "rest": {"n": 9, 'the "A" \\ ü;$': 8, "a": 7}}
    assert to_outside(LINE, value) == {"n": 1, "a": 7}


@pytest.mark.parametrize(
    "text, is_name",
    [("", False), ("a" * 128, True), ("a" * 129, False), ("a\nb", False), ("\x85", False), (" ", True)],
)
def test_what_can_be_an_outside_name(text: str, is_name: bool) -> None:
    assert is_outside_name(text) is is_name
