"""Check the parts of the serving campaigns that need no server, and that their judges can fail."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.proofs.serving import fuzz, openapi, payments
from tests.proofs.serving.attacks import MALFORMED, OVERSIZED, SMUGGLED, Attack
from tests.proofs.serving.hostile import Neighbour, attack_problem
from tests.support.web import Web, message, sends

ATTACKS = [*MALFORMED, *OVERSIZED, *SMUGGLED]


def test_attacks_have_names_of_their_own() -> None:
    assert len({each.name for each in ATTACKS}) == len(ATTACKS)
    assert all(each.data for each in ATTACKS)


def test_a_fuzzed_request_is_the_same_every_time() -> None:
    drawn = [fuzz.draw(1, number) for number in range(300)]
    assert drawn == [fuzz.draw(1, number) for number in range(300)]
    assert len({b"".join(each.pieces) for each in drawn}) > 200
    assert {each.ends for each in drawn} == {"read", "half", "reset"}


@pytest.mark.parametrize(
    "answer, problem",
    [
        (message(400), None),
        (b"", None),
        (message(200), "not one of"),
        (message(500), "not one of"),
        (message(400) + message(200), "a second answer"),
    ],
    ids=["refused", "closed", "accepted", "broken", "smuggled"],
)
def test_answers_to_attacks_are_judged(answer: bytes, problem: str | None) -> None:
    with Web() as server:
        server.on("/x", sends(answer, then_close=True))
        found = asyncio.run(attack_problem(server.port, Attack("a", b"GET /x HTTP/1.1\r\n\r\n")))
    assert found is None if problem is None else problem in str(found)


def test_the_proper_client_ends_though_it_loses_a_cancellation() -> None:
    class Deaf(Neighbour):
        async def once(self) -> None:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    async def use() -> None:
        async with Deaf(0).beside():
            await asyncio.sleep(0.005)

    async def ends() -> bool:
        done, _ = await asyncio.wait({asyncio.create_task(use())}, timeout=20)
        return bool(done)

    assert asyncio.run(ends())


def test_the_books_find_every_difference(tmp_path: Path) -> None:
    dsn = f"sqlite:{tmp_path / 'shop.db'}"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE transactions (order_id, transaction_id)")
        connection.execute("CREATE TABLE vesper_states (entity, state)")
        connection.executemany("INSERT INTO transactions VALUES (?, ?)", [("a", "ch_1"), ("b", "ch_9")])
        connection.execute("INSERT INTO vesper_states VALUES ('a', 'paid')")
    counted = {"charges_by_key": {"a": 1, "b": 2, "d": 1}, "charges_without_key": 1, "refunds": 0}
    found = payments._books({"a": "ch_1", "b": "ch_2", "c": "ch_3"}, counted, dsn)
    expected = {
        "paid": 3, "charged_more_than_once": 1, "charged_without_key": 1, "paid_without_charge": 1,
        "charged_without_answer": 1, "recorded_otherwise": 2, "not_settled": 2, "refunds": 0,
    }  # fmt: skip
    assert found == expected
    report: dict[str, Any] = {
        **found,
        "exit_code": 0,
        "wrong": ["x"],
        "answers": {"refused_connections": 1},
        "kills": 1,
    }
    assert len(payments.problems_of(report)) == 6 + 3


def test_every_operation_of_a_document_is_called() -> None:
    document = {
        "paths": {
            "/a/{x}": {
                "get": {"operationId": "a", "parameters": [{"name": "x", "in": "path", "example": 1}, {"name": "y"}]},
                "post": {
                    "operationId": "b",
                    "requestBody": {"content": {"application/json": {"examples": {"case_1": {"value": {"z": 1}}}}}},
                },
            }
        }
    }
    first, second = openapi.calls_of(document)
    assert first == {"id": "a", "method": "GET", "path": "/a/{x}", "parameters": {"path": {"x": 1}}}
    assert second["body"] == {"z": 1}
    assert openapi.problems_of("client", [first, second], {"a": 200, "b": 422}) == ["client: b: 422"]
    assert 'client.POST("/a/{x}", {"params": {}, "body": {"z": 1}})' in openapi._typescript([second])
