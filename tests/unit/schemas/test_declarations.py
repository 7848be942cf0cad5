"""What `schemas/` refuses, so that a wrong declaration never becomes a wrong table."""

from __future__ import annotations

from dataclasses import replace

import pytest

import declarations
import type_text
from declarations import DeclarationError, Operation, check_overloads

ALL = declarations.load_declarations()
BY_NAME = {operation.full_name: operation for operation in ALL.operations}


def overload(name: str, params: dict[str, str], type_params: dict[str, str] | None = None) -> Operation:
    base = BY_NAME["text.length"]
    return replace(base, name=name, params=tuple(params.items()), type_params=tuple((type_params or {}).items()))


@pytest.mark.parametrize(
    "text",
    [
        "integer",
        "enum[a, b]",
        "map<string, array<optional<T>>>",
        "{key: K, value: V}",
        "array<{index: integer, value: T}>",
        "fn(S, T) -> map<K, V>",
    ],
)
def test_types_are_read(text: str) -> None:
    assert type_text.parse(text) == type_text.parse(text.replace(" ", ""))


@pytest.mark.parametrize("text", ["", "int", "array", "array<>", "map<string>", "integer integer", "enum[a", "fn(T)"])
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(type_text.TypeTextError):
        type_text.parse(text)


def test_an_optional_of_an_optional_is_one() -> None:
    known = {"T": type_text.parse("optional<integer>")}
    assert type_text.substitute(type_text.parse("optional<T>"), known) == known["T"]


def test_overloads_that_differ_in_a_type_are_taken() -> None:
    check_overloads(
        [
            overload("of_text", {"value": "string"}),
            overload("of_integers", {"value": "array<integer>"}),
            overload("of_decimals", {"value": "array<decimal>"}),
            overload("of_two", {"value": "T", "other": "T"}, {"T": "any"}),
        ]
    )


@pytest.mark.parametrize(
    "params,type_params",
    [
        ({"value": "string"}, {}),
        ({"value": "T"}, {"T": "any"}),
        ({"value": "T"}, {"T": "key"}),
    ],
)
def test_overloads_that_could_both_be_meant_are_refused(params: dict[str, str], type_params: dict[str, str]) -> None:
    with pytest.raises(DeclarationError, match="may be"):
        check_overloads([overload("one", {"value": "string"}), overload("two", params, type_params)])


def test_defaults_count_as_fewer_arguments() -> None:
    one = overload("one", {"value": "string"})
    two = replace(overload("two", {"value": "string", "width": "integer"}), defaults=(("width", 1),))
    with pytest.raises(DeclarationError, match="may be"):
        check_overloads([one, two])


def test_the_engines_get_what_is_implemented_only() -> None:
    engines = ALL.implemented()
    assert all(operation.is_implemented for operation in engines.operations)
    raised = {code for operation in engines.operations for code in operation.raises}
    of_the_flow = {"bad_input", "loop_limit", "recursion_limit"} | {error.name for error in ALL.errors if error.effect}
    assert {error.name for error in engines.errors} == raised | of_the_flow
