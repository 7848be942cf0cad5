"""Inputs that are no plain dicts. Every case runs on both engines and comes to what the plain form comes to."""

from __future__ import annotations

import enum
from dataclasses import InitVar, dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, ConfigDict, PrivateAttr, computed_field
from pydantic import Field as ModelField

import vesper
from tests.unit.api.given import CLOCK, ENGINES, NODES, PAYMENT, basket, written

DAY = date(2026, 11, 15)


class Kind(enum.Enum):
    RETAIL = "retail"
    TRADE = "trade"
    NUMBER = 3


class Tag(enum.StrEnum):
    NEW = "new"
    SALE = "sale"


class OldTag(enum.Enum):
    NEW = "new"
    SALE = "sale"


@dataclass
class Line:
    sku: str
    qty: int
    price: Decimal
    tags: Any = field(default_factory=lambda: frozenset({OldTag.NEW}))
    note: str | None = None


@dataclass(frozen=True, slots=True)
class SlotLine:
    sku: str
    qty: int
    price: Decimal
    tags: Any = frozenset({Tag.NEW})
    counted: ClassVar[int] = 0
    unused: InitVar[int] = 5


@dataclass
class Basket:
    lines: list[Any]
    kind: Any = Kind.RETAIL
    rates: dict[Any, Any] = field(default_factory=lambda: {OldTag.SALE: Decimal("0.5")})
    days: dict[date, int] = field(default_factory=lambda: {DAY: 3})
    divisor: int = field(default=4, init=False)


class ModelLine(BaseModel):
    sku: str = ModelField(alias="SKU")
    qty: int
    price: Decimal
    tags: set[Tag] = {Tag.NEW}
    _secret: int = PrivateAttr(default=1)

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own way to write it
    @property
    def total(self) -> Decimal:
        raise AssertionError("no property is called")


class ModelBasket(BaseModel):
    model_config = ConfigDict(extra="allow")
    lines: list[Any]
    kind: Kind = Kind.RETAIL
    rates: dict[OldTag, Decimal] = {OldTag.SALE: Decimal("0.5")}
    days: dict[date, int] = {DAY: 3}
    divisor: int = 4


LINES: list[Any] = [
    Line("ink", 2, Decimal("1.50")),
    SlotLine("ink", 2, Decimal("1.50")),
    ModelLine(SKU="ink", qty=2, price=Decimal("1.50")),
    {"sku": "ink", "qty": 2, "price": "1.50", "tags": {Tag.NEW, OldTag.SALE}},
    {"sku": "ink", "qty": 2, "price": "1.50", "tags": [OldTag.NEW]},
    {"sku": "ink", "qty": 2, "price": "1.50", "tags": (Tag.SALE,)},
]
EXPECTED = {"total": Decimal("3.50"), "kind": "retail", "days": 3, "value": 25}


@pytest.fixture(params=ENGINES)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> vesper.Node:
    return basket(tmp_path, str(request.param))


@pytest.mark.parametrize("line", LINES, ids=lambda each: type(each).__name__)
def test_dataclasses_models_and_dicts_are_the_same_inside_each_other(node: vesper.Node, line: Any) -> None:
    assert node(Basket([line])).value == EXPECTED
    assert node(ModelBasket(lines=[line])).value == EXPECTED
    assert node(vars(Basket([line])) | {"divisor": 4}).value == EXPECTED
    assert node(**vars(ModelBasket(lines=[line]))).value == EXPECTED
    assert node(Basket([line], rates={"sale": 0.5})).value is None
    assert node({**vars(Basket([])), "lines": [line], "buyer": line, "divisor": 4}).value == EXPECTED


def test_what_a_model_allows_besides_is_not_read(node: vesper.Node) -> None:
    assert node(ModelBasket(lines=[LINES[0]], colour="red")).value == EXPECTED  # type: ignore[call-arg]


def test_problems_with_objects_have_the_same_paths(node: vesper.Node) -> None:
    wrong = Line("ink", 2.0, Decimal("1.50"), frozenset({OldTag.NEW}))  # type: ignore[arg-type]
    error = node(Basket([LINES[0], wrong], kind=Kind.NUMBER)).error
    assert error is not None
    assert [(each.path, each.kind) for each in error.problems] == [
        ("lines[1].qty", "wrong_type"),
        ("kind", "wrong_type"),
    ]
    assert "kind: expected one of retail, trade, got Kind" in str(error)


def test_a_member_of_an_enum_is_only_taken_for_an_enum(node: vesper.Node) -> None:
    line = {"sku": Kind.RETAIL, "qty": 2, "price": "1.50", "tags": []}
    error = node(Basket([line])).error
    assert error is not None
    assert [(each.path, each.kind) for each in error.problems] == [("lines[0].sku", "wrong_type")]


def test_members_with_the_same_text_are_duplicates(node: vesper.Node) -> None:
    line = {"sku": "ink", "qty": 2, "price": "1.50", "tags": {OldTag.NEW, "new"}}
    error = node(Basket([line], rates={OldTag.SALE: 1, "sale": 2})).error
    assert error is not None
    assert [(each.path, each.kind) for each in error.problems] == [
        ("lines[0].tags", "duplicate"),
        ("rates", "duplicate"),
    ]


def test_no_method_and_no_property_is_called(node: vesper.Node) -> None:
    class Sly(Basket):
        def __getattribute__(self, name: str) -> Any:
            if name == "__class__":
                return Basket
            raise AssertionError(f"somebody asked for {name}")

    class Shadowed(Basket):
        @property
        def buyer(self) -> Any:
            raise AssertionError("no property is called")

    sly = Sly.__new__(Sly)
    object.__setattr__(sly, "__dict__", {**vars(Basket([LINES[0]])), "divisor": 4})
    assert node(sly).value == EXPECTED
    assert node(Shadowed([LINES[0]])).value == EXPECTED


def test_a_field_that_was_taken_away_is_not_given(node: vesper.Node) -> None:
    given = Basket([LINES[0]])
    del given.kind
    vars(given).pop("rates")
    error = node(given).error
    assert error is not None
    assert [(each.path, each.kind) for each in error.problems] == [("rates", "missing")], "the class has a kind"
    line = SlotLine("ink", 2, Decimal("1.50"))
    object.__delattr__(line, "qty")
    error = node(Basket([line])).error
    assert error is not None
    assert [(each.path, each.kind) for each in error.problems] == [("lines[0].qty", "missing")]


def test_a_class_is_no_instance(node: vesper.Node) -> None:
    for given in (Basket, ModelBasket, object(), None, 5):
        with pytest.raises(TypeError):
            node(given)


# -- JSON -----------------------------------------------------------------------------------------

TEXT = """{"lines": [{"sku": "ink", "qty": 2, "price": 1.50, "tags": ["new"], "note": null}],
           "kind": "retail", "rates": {"sale": 5e-1}, "days": [["2026-11-15", 3]], "divisor": 4}"""


@pytest.mark.parametrize("text", [TEXT, TEXT.encode(), bytearray(TEXT.encode())], ids=["str", "bytes", "bytearray"])
def test_json_text(node: vesper.Node, text: str | bytes) -> None:
    assert node(text).value == EXPECTED


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_are_read_from_their_text(engine: str) -> None:
    payment = vesper.load("payment_decision", nodes=NODES, engine=engine)
    text = '{"amount": 0.10, "balance": "100", "currency": "USD", "country": "DE", "user_age_days": 400}'
    assert payment(text).value == payment({**PAYMENT, "amount": "0.10", "balance": 100}).value
    error = payment(text.replace("400", "4e2")).error
    assert error is not None
    assert [(each.path, each.kind) for each in error.problems] == [("user_age_days", "wrong_type")]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "zero, sign", [("-0.0", "-0.0"), ("-0", "-0.0"), ("-0e3", "-0.0"), ("0", "0.0"), ("0.0", "0.0")]
)
def test_a_float_keeps_the_sign_of_its_zero(engine: str, zero: str, sign: str, tmp_path: Path) -> None:
    zeros = (
        CLOCK.replace("scheduled_job", "function")
        .replace("add: {type: integer, default: 0}", "add: float\n  n: integer")
        .replace("at: timestamp, add: integer", "add: float, n: integer")
    )
    node = vesper.load(written(tmp_path, zeros.replace("at: now(), add: add", "add: add, n: n")), engine=engine)
    outcome = node(f'{{"add": {zero}, "n": -0}}')
    assert repr(outcome["add"]) == sign
    assert repr(outcome["n"]) == "0"


@pytest.mark.parametrize(
    "text, problems",
    [
        ("", [("", "malformed")]),
        ("{", [("", "malformed")]),
        ('{"kind": NaN}', [("", "malformed")]),
        ('{"kind": "a", "kind": "b"}', [("", "malformed")]),
        ('{"kind": "\\ud800"}', [("", "malformed")]),
        (b"\xff", [("", "malformed")]),
        ("[]", [("", "wrong_type")]),
        ("null", [("", "wrong_type")]),
        (TEXT.replace('"sku"', '"skew"'), [("lines[0].sku", "missing"), ("lines[0].skew", "unknown")]),
        (TEXT.replace('["2026-11-15", 3]', '["2026-11-15", 3], ["2026-11-15", 4]'), [("days", "duplicate")]),
        (TEXT.replace('["2026-11-15", 3]', '["2026-11-15"]'), [("days", "wrong_type")]),
        (TEXT.replace("2,", "2.0,"), [("lines[0].qty", "wrong_type")]),
    ],
)
def test_json_that_does_not_fit(node: vesper.Node, text: str | bytes, problems: list[tuple[str, str]]) -> None:
    error = node(text).error
    assert error is not None
    assert error.code == "bad_input"
    assert [(each.path, each.kind) for each in error.problems] == problems


def test_json_that_is_no_object_says_so(node: vesper.Node) -> None:
    error = node("[]").error
    assert error is not None
    assert str(error).splitlines()[1] == "  expected a JSON object with the inputs, got an array (line 1, column 1)"
