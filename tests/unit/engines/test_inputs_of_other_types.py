"""Conversion of floats, bytes, times and json, on every engine: the second half of values.md as a table."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any

import pytest

from tests.support.nodes import small_node
from vesper.compiler import Compiled
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.values.model import same

TWO_HOURS = timezone(timedelta(hours=2))


class OddZone(tzinfo):
    def utcoffset(self, when: datetime | None) -> timedelta | None:
        return timedelta(hours=1, seconds=7, microseconds=3)

    def dst(self, when: datetime | None) -> timedelta | None:
        return None

    def tzname(self, when: datetime | None) -> str | None:
        return None


class NoZone(OddZone):
    def utcoffset(self, when: datetime | None) -> timedelta | None:
        return None


class Day(date):
    @property
    def year(self) -> Any:
        raise AssertionError("never called")


class Moment(datetime):
    @property
    def year(self) -> Any:
        raise AssertionError("never called")

    def utcoffset(self) -> Any:
        raise AssertionError("never called")


class Length(timedelta):
    @property
    def days(self) -> Any:
        raise AssertionError("never called")


class Raw(bytes):
    def __bytes__(self) -> bytes:
        raise AssertionError("never called")


class Real(float):
    def __float__(self) -> float:
        raise AssertionError("never called")


class Items(list[object]):
    def __iter__(self) -> Any:
        raise AssertionError("never called")


def echo(type_: str) -> Compiled:
    inputs = f'x: "{type_}"'
    return small_node(inputs, "- {operation: return, success: {result: x}}", outputs=f'result: "{type_}"')


def _nested(levels: int) -> object:
    found: object = 1
    for _ in range(levels):
        found = [found]
    return found


TAKEN: list[tuple[str, object, object]] = [
    ("float", 1.5, 1.5),
    ("float", -0.0, -0.0),
    ("float", math.nan, math.nan),
    ("float", 2**53, 2.0**53),
    ("float", "NaN", math.nan),
    ("float", "-Infinity", -math.inf),
    ("float", Real(1.5), 1.5),
    ("bytes", b"ab", b"ab"),
    ("bytes", bytearray(b"ab"), b"ab"),
    ("bytes", memoryview(b"abcd")[::2], b"ac"),
    ("bytes", "AP8=", b"\x00\xff"),
    ("bytes", "", b""),
    ("bytes", Raw(b"ab"), b"ab"),
    ("timestamp", datetime(2024, 2, 29, 12, tzinfo=UTC), datetime(2024, 2, 29, 12, tzinfo=UTC)),
    ("timestamp", datetime(2024, 2, 29, 12, tzinfo=TWO_HOURS), datetime(2024, 2, 29, 10, tzinfo=UTC)),
    ("timestamp", datetime(2024, 1, 1, 1, 0, 7, 3, OddZone()), datetime(2024, 1, 1, tzinfo=UTC)),
    ("timestamp", "2024-02-29t12:00:00.5+02:00", datetime(2024, 2, 29, 10, 0, 0, 500000, UTC)),
    ("timestamp", Moment(2024, 2, 29, tzinfo=UTC), datetime(2024, 2, 29, tzinfo=UTC)),
    ("date", date(2024, 2, 29), date(2024, 2, 29)),
    ("date", "2024-02-29", date(2024, 2, 29)),
    ("date", Day(2024, 2, 29), date(2024, 2, 29)),
    ("duration", timedelta(days=-1, seconds=5), timedelta(days=-1, seconds=5)),
    ("duration", "1h30m", timedelta(minutes=90)),
    ("duration", timedelta(days=3_652_059), timedelta(days=3_652_059)),
    ("duration", Length(days=2), timedelta(days=2)),
    ("json", None, None),
    ("json", True, True),
    ("json", 10**20, 10**20),
    ("json", 0.1, Decimal("0.1")),
    ("json", 1e22, 10**22),
    ("json", Decimal("1.50"), Decimal("1.50")),
    ("json", Decimal("1E+3"), 1000),
    ("json", {"b": (1, "x"), "a": None}, {"a": None, "b": [1, "x"]}),
    ("json", Items([1]), [1]),
    ("json", _nested(128), _nested(128)),
    ("optional<json>", None, None),
    ("map<date, json>", {date(2024, 1, 2): 1, "2024-01-01": 2}, {date(2024, 1, 1): 2, date(2024, 1, 2): 1}),
    ("set<bytes>", [b"b", "AA=="], frozenset({b"b", b"\x00"})),
]

REFUSED: list[tuple[str, object, str, str]] = [
    ("float", Decimal("1.5"), "x", "wrong_type"),
    ("float", True, "x", "wrong_type"),
    ("float", "1.5", "x", "malformed"),
    ("float", 2**53 + 1, "x", "out_of_range"),
    ("float", 10**400, "x", "out_of_range"),
    ("bytes", "AP8", "x", "malformed"),
    ("bytes", "AP9=\n", "x", "malformed"),
    ("bytes", [1], "x", "wrong_type"),
    ("timestamp", datetime(2024, 2, 29), "x", "malformed"),  # noqa: DTZ001
    ("timestamp", datetime(2024, 2, 29, tzinfo=NoZone()), "x", "malformed"),
    ("timestamp", datetime(1, 1, 1, tzinfo=TWO_HOURS), "x", "out_of_range"),
    ("timestamp", "0001-01-01T00:00:00+01:00", "x", "out_of_range"),
    ("timestamp", date(2024, 2, 29), "x", "wrong_type"),
    ("timestamp", 0, "x", "wrong_type"),
    ("date", datetime(2024, 2, 29, tzinfo=UTC), "x", "wrong_type"),
    ("date", "2023-02-29", "x", "malformed"),
    ("duration", 5, "x", "wrong_type"),
    ("duration", "P1M", "x", "malformed"),
    ("duration", timedelta(days=-3_652_059, microseconds=-1), "x", "out_of_range"),
    ("json", b"x", "x", "wrong_type"),
    ("json", {"a": {1: 2}}, "x", "wrong_type"),
    ("json", [math.nan], "x", "malformed"),
    ("json", [math.nan, b"x"], "x", "wrong_type"),
    ("json", 10**1001, "x", "out_of_range"),
    ("json", _nested(129), "x", "too_deep"),
    ("array<json>", [1, _nested(129)], "x[1]", "too_deep"),
    ("map<date, json>", {date(2024, 1, 1): b"x"}, "x[2024-01-01]", "wrong_type"),
    ("map<bytes, float>", {b"\x00": "a"}, "x[AA==]", "malformed"),
    ("map<timestamp, float>", {"2024-01-01T00:00:00Z": True}, "x[2024-01-01T00:00:00Z]", "wrong_type"),
    ("map<date, json>", {"2024-01-01": 1, date(2024, 1, 1): 1}, "x", "duplicate"),
    ("set<date>", ["2024-01-01", date(2024, 1, 1)], "x", "duplicate"),
]

ECHOES = {name: echo(name) for name in dict.fromkeys([*(each[0] for each in TAKEN), *(each[0] for each in REFUSED)])}


def _id(value: object) -> str:
    # Workers that run these side by side must call them the same: no addresses, and sets in order.
    shown = f"a set of {sorted(map(repr, value))}" if isinstance(value, set | frozenset) else repr(value)
    return shown.partition(" at 0x")[0].encode("ascii", "backslashreplace").decode()[:24]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("type_, given, expected", TAKEN, ids=_id)
def test_taken(engine: str, type_: str, given: object, expected: object) -> None:
    outcome = ENGINES[engine].load(ECHOES[type_]).call({"x": given})
    assert isinstance(outcome, Returned)
    assert same(outcome.value["result"], expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("type_, given, path, kind", REFUSED, ids=_id)
def test_refused(engine: str, type_: str, given: object, path: str, kind: str) -> None:
    outcome = ENGINES[engine].load(ECHOES[type_]).call({"x": given})
    assert isinstance(outcome, Failed)
    assert [(each.path, each.kind.value) for each in outcome.problems] == [(path, kind)]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_caller_gets_is_new(engine: str) -> None:
    given = {"a": [1]}
    outcome = ENGINES[engine].load(ECHOES["json"]).call({"x": given})
    assert isinstance(outcome, Returned)
    found = outcome.value["result"]
    assert found == given
    assert isinstance(found, dict)
    assert found["a"] is not given["a"]


def test_nan_agrees_with_nan_and_the_zeros_differ() -> None:
    assert same(math.nan, -math.nan)
    assert same([{"a": math.nan}], [{"a": float("nan")}])
    assert not same(0.0, -0.0)
    assert not same(1.0, 1)
