"""`node.map`: one call for many inputs."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.unit.api.given import CLOCK, ENGINES, NODES, PAYMENT, written


@pytest.fixture(params=ENGINES)
def payment(request: pytest.FixtureRequest) -> vesper.Node:
    return vesper.load("payment_decision", nodes=NODES, engine=str(request.param))


def amounts(*given: object) -> list[dict[str, Any]]:
    return [{**PAYMENT, "amount": each} for each in given]


def test_it_is_call_for_each_in_order(payment: vesper.Node) -> None:
    many = amounts(*(Decimal(cents) / 100 for cents in range(1, 2_500)))
    answers = payment.map(many)
    assert answers == [payment.call(each) for each in many]
    assert payment.map(each for each in many) == answers
    assert payment.map(tuple(many[:2])) == answers[:2]
    assert payment.map([]) == []


def test_long_lists_run_on_the_direct_engine_unless_another_is_named() -> None:
    many = amounts(*range(1, 1_001))
    unnamed = vesper.load("payment_decision", nodes=NODES)
    named = vesper.load("payment_decision", nodes=NODES, engine="python")
    expected = named.map(many)
    assert unnamed.map(many) == expected
    assert type(unnamed._table_program).__name__ != type(named._table_program).__name__
    assert unnamed._direct_call_many is not None
    with pytest.raises(vesper.ContractBroken) as broken:
        unnamed.map([*many, *amounts(0)])
    assert "inputs 1000 of `map`" in broken.value.__notes__[-1]


def test_the_first_that_ends_otherwise_is_raised_with_its_place(payment: vesper.Node) -> None:
    with pytest.raises(vesper.ContractBroken) as broken:
        payment.map(amounts(1, 2, 0, "x"))
    assert "inputs 2 of `map`" in broken.value.__notes__[-1]
    with pytest.raises(vesper.BadInput) as refused:
        payment.map(amounts(1, "x", 0))
    assert "inputs 1 of `map`" in refused.value.__notes__[-1]


def test_what_is_no_dict_is_refused_with_its_place(payment: vesper.Node) -> None:
    with pytest.raises(TypeError) as refused:
        payment.map([PAYMENT, 7])
    assert "inputs 1 of `map`" in refused.value.__notes__[-1]


def test_what_is_no_time_is_refused_though_a_function_has_no_start(payment: vesper.Node) -> None:
    with pytest.raises(ValueError, match=r"now=5: .*give a datetime with a time zone"):
        payment.map([PAYMENT], now=5)  # type: ignore[call-overload]
    assert payment.map([PAYMENT], now="2026-11-16T12:00:00Z") == payment.map([PAYMENT])


def test_outcomes_are_all_there(payment: vesper.Node) -> None:
    found = payment.map([*amounts(1, 0, "x"), '{"amount": 1}'], outcomes=True)
    assert [outcome.error.kind if outcome.error else None for outcome in found] == [
        None, "contract_broken", "failed", "failed",
    ]  # fmt: skip
    assert found[0].value == payment.call(amounts(1)[0])


def test_a_list_that_is_changed_by_another_thread_is_no_harm() -> None:
    node = vesper.load("payment_decision", nodes=NODES, engine="interp")
    many = amounts(*range(1, 3_000))
    is_over = threading.Event()

    def shorten() -> None:
        while not is_over.is_set() and len(many) > 5:
            many.pop()

    thread = threading.Thread(target=shorten)
    thread.start()
    answers = node.map(many)
    is_over.set()
    thread.join()
    assert all(answer["decision"] in {"approve", "review", "decline"} for answer in answers)


@pytest.mark.parametrize("engine", ENGINES)
def test_all_start_at_one_time(engine: str, tmp_path: Path) -> None:
    node = vesper.load(written(tmp_path, CLOCK), engine=engine)
    answers = node.map([{}] * 3, now="2026-11-15T10:00:00Z")
    assert len({str(answer) for answer in answers}) == 1
    assert len({str(answer) for answer in node.map([{}] * 3)}) == 1
