"""Conversion of inputs, on every engine: values.md as a table."""

from __future__ import annotations

import enum
from decimal import Decimal, ExtendedContext, localcontext
from typing import Any

import pytest

from tests.support.nodes import PAYMENT_DECISION, compiled, small_node
from vesper.compiler import Compiled
from vesper.engines.engine import Program
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.values.model import same


class Whole(enum.IntEnum):
    SEVEN = 7


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "somebody else"

    def __len__(self) -> int:
        return 99


class Money(Decimal):
    def __str__(self) -> str:
        return "999"

    def as_tuple(self) -> Any:
        raise AssertionError("never called")


class Number(int):
    def __int__(self) -> int:
        return 999

    def __index__(self) -> int:
        return 999


class Impostor:
    """Says that it is whatever it is asked for."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"impostor {self.kind.__name__}"

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "kind" if name == "__class__" else name)


def echo(type_: str) -> Compiled:
    """A node that returns what it is given."""
    return small_node(f"x: {type_}", "- {operation: return, success: {result: x}}", outputs=f"result: {type_}")


ECHOES = {name: echo(name) for name in ("decimal", "integer", "boolean", "string", "enum[red, green]")}

TAKEN: list[tuple[str, object, object]] = [
    ("decimal", Decimal("1.10"), Decimal("1.10")),
    ("decimal", Decimal("1E+3"), Decimal(1000)),
    ("decimal", Decimal("-0.00"), Decimal("0.00")),
    ("decimal", Decimal("-0"), Decimal(0)),
    ("decimal", Decimal("0E+5"), Decimal(0)),
    ("decimal", Decimal("1E-1000"), Decimal("1E-1000")),
    ("decimal", Decimal("9" * 1000), Decimal("9" * 1000)),
    ("decimal", 5, Decimal(5)),
    ("decimal", 10**999, Decimal("1" + "0" * 999)),
    ("decimal", "1.10", Decimal("1.10")),
    ("decimal", "1e2", Decimal(100)),
    ("decimal", Money("1.5"), Decimal("1.5")),
    ("decimal", Number(5), Decimal(5)),
    ("decimal", Text("2.50"), Decimal("2.50")),
    ("integer", 2**63 - 1, 2**63 - 1),
    ("integer", -(2**63), -(2**63)),
    ("integer", Whole.SEVEN, 7),
    ("integer", Number(5), 5),
    ("boolean", True, True),
    ("boolean", False, False),
    ("string", "", ""),
    ("string", "é\x00\U0010ffff", "é\x00\U0010ffff"),
    ("string", Text("mine"), "mine"),
    ("enum[red, green]", "green", "green"),
    ("enum[red, green]", Text("red"), "red"),
]

REFUSED: list[tuple[str, object, str]] = [
    ("decimal", 0.1, "wrong_type"),
    ("decimal", True, "wrong_type"),
    ("decimal", None, "wrong_type"),
    ("decimal", b"1", "wrong_type"),
    ("decimal", [1], "wrong_type"),
    ("decimal", Impostor(Decimal), "wrong_type"),
    ("decimal", Impostor(str), "wrong_type"),
    ("decimal", "", "malformed"),
    ("decimal", "1.1.1", "malformed"),
    ("decimal", "NaN", "malformed"),
    ("decimal", "\ud800", "malformed"),
    ("decimal", "１", "malformed"),
    ("decimal", Decimal("NaN"), "malformed"),
    ("decimal", Decimal("sNaN"), "malformed"),
    ("decimal", Decimal("-Infinity"), "malformed"),
    ("decimal", Decimal("1E-1001"), "out_of_range"),
    ("decimal", Decimal("1E+1000"), "out_of_range"),
    ("decimal", Decimal("1E+999999999"), "out_of_range"),
    ("decimal", Decimal("9" * 1001), "out_of_range"),
    ("decimal", "1e999999999", "out_of_range"),
    ("decimal", 10**1000, "out_of_range"),
    ("decimal", -(10**1000), "out_of_range"),
    ("decimal", 10**100_000, "out_of_range"),
    ("integer", 2**63, "out_of_range"),
    ("integer", -(2**63) - 1, "out_of_range"),
    ("integer", 10**100_000, "out_of_range"),
    ("integer", True, "wrong_type"),
    ("integer", 1.0, "wrong_type"),
    ("integer", "1", "wrong_type"),
    ("integer", Decimal(1), "wrong_type"),
    ("integer", None, "wrong_type"),
    ("integer", Impostor(int), "wrong_type"),
    ("boolean", 1, "wrong_type"),
    ("boolean", "true", "wrong_type"),
    ("boolean", None, "wrong_type"),
    ("boolean", Impostor(bool), "wrong_type"),
    ("string", 1, "wrong_type"),
    ("string", b"x", "wrong_type"),
    ("string", None, "wrong_type"),
    ("string", Impostor(str), "wrong_type"),
    ("string", "a\udfffb", "malformed"),
    ("enum[red, green]", "blue", "not_a_member"),
    ("enum[red, green]", "Red", "not_a_member"),
    ("enum[red, green]", "\ud800", "not_a_member"),
    ("enum[red, green]", 0, "wrong_type"),
]


def _id(value: object) -> str:
    shown = f"{value.bit_length()} bits" if type(value) is int and abs(value) > 10**20 else repr(value)
    return shown.encode("ascii", "backslashreplace").decode()[:24]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("type_, given, expected", TAKEN, ids=_id)
def test_taken(engine: str, type_: str, given: object, expected: object) -> None:
    outcome = ENGINES[engine].load(ECHOES[type_]).call({"x": given})
    assert isinstance(outcome, Returned)
    assert same(outcome.value["result"], expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("type_, given, kind", REFUSED, ids=_id)
def test_refused(engine: str, type_: str, given: object, kind: str) -> None:
    outcome = ENGINES[engine].load(ECHOES[type_]).call({"x": given})
    assert isinstance(outcome, Failed)
    assert [(each.path, each.kind.value) for each in outcome.problems] == [("x", kind)]


@pytest.fixture(params=ENGINES)
def program(request: pytest.FixtureRequest) -> Program:
    return ENGINES[request.param].load(compiled(PAYMENT_DECISION))


def test_every_problem_is_listed_in_order(program: Program) -> None:
    given = {"zeta": 1, "currency": "JPY", "amount": 0.1, "flagged": "no", "alpha": 2, "user_age_days": 3}
    outcome = program.call(given)
    assert isinstance(outcome, Failed)
    assert outcome.at is None
    assert [(each.path, each.kind.value) for each in outcome.problems] == [
        ("amount", "wrong_type"),
        ("balance", "missing"),
        ("currency", "not_a_member"),
        ("country", "missing"),
        ("flagged", "wrong_type"),
        ("alpha", "unknown"),
        ("zeta", "unknown"),
    ]


class Key(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise AssertionError("never called")

    __hash__ = str.__hash__


@pytest.mark.parametrize("engine", ENGINES)
def test_names_may_be_of_a_subclass(engine: str) -> None:
    program = ENGINES[engine].load(ECHOES["integer"])
    outcome = program.call({Key("x"): 1})
    assert isinstance(outcome, Returned)
    assert outcome.value == {"result": 1}


class Two(dict[str, object]):
    """Stores one thing and says another."""

    def __getitem__(self, key: str) -> object:
        return 100

    def __contains__(self, key: object) -> bool:
        return False

    def items(self) -> Any:
        raise AssertionError("never called")

    def __iter__(self) -> Any:
        raise AssertionError("never called")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dict_is_read_by_what_it_stores(engine: str) -> None:
    outcome = ENGINES[engine].load(ECHOES["integer"]).call(Two(x=2))
    assert isinstance(outcome, Returned)
    assert outcome.value == {"result": 2}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text, expected", [("0e99999999999999999999", Decimal(0)), ("1e99999999999999999999", None)])
def test_the_ambient_context_does_not_decide_what_can_be_read(engine: str, text: str, expected: Decimal | None) -> None:
    program = ENGINES[engine].load(ECHOES["decimal"])
    with localcontext(ExtendedContext):
        outcome = program.call({"x": text})
    if expected is None:
        assert isinstance(outcome, Failed)
        assert outcome.problems[0].kind.value == "out_of_range"
    else:
        assert isinstance(outcome, Returned)
        assert same(outcome.value["result"], expected)


@pytest.mark.parametrize("inputs", [None, [], "x", {1: 2}, Impostor(dict)])
def test_what_is_no_dict_of_names_is_a_type_error(program: Program, inputs: Any) -> None:
    with pytest.raises(TypeError):
        program.call(inputs)
    with pytest.raises(TypeError):
        program.start(inputs).advance(())


def test_an_execution_ends_once(program: Program) -> None:
    execution = program.start({})
    execution.advance(())
    with pytest.raises(ValueError, match="has ended"):
        execution.advance(())
