"""`with vesper.budget(…)` of docs/how-to/limit-costs.md: runs inside it count, and it has what they took."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.docs.test_code_blocks import blocks_of
from tests.support.console import ROOT
from tests.support.models.server import ModelServer
from tests.unit.effects.models.budget_nodes import TOKENS, budget_host, node_text, reply
from tests.unit.host.small import node_from
from vesper.host.budgets import BudgetAmounts
from vesper.host.run_context import RunContext, current_context

QUESTION = {"event_id": "How are you?"}


def test_a_scope_blocks_and_tells(tmp_path: Path) -> None:
    with ModelServer(reply) as server, budget_host(tmp_path, server) as host:
        node = node_from(node_text(), tmp_path, host)
        with vesper.budget(usd="2.00", calls=3) as spent:
            found = [node(QUESTION).ok for _ in range(5)]
        assert found == [True] * 3 + [False] * 2
        assert node(QUESTION).ok
        used = spent.used
        assert (used.usd, used.tokens, used.calls) == (Decimal("0.006"), 3 * TOKENS, 3)
        assert used.time is not None
        assert used.time > timedelta(0)
        assert spent.remaining == BudgetAmounts(Decimal("1.994"), None, 0, None)
        assert spent.reserved == BudgetAmounts(Decimal(0), 0, 0, timedelta(0))
        assert spent.limit == BudgetAmounts(Decimal("2.00"), None, 3, None)


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    [text] = [each.text for each in blocks_of(ROOT / "docs" / "how-to" / "limit-costs.md") if each.language == "python"]
    with ModelServer(reply) as server, budget_host(tmp_path, server) as host:
        node = node_from(node_text(), tmp_path, host)
        monkeypatch.setattr(vesper, "load", lambda _: lambda ticket: node(event_id=ticket))
        exec(compile(text, "limit-costs.md", "exec"), {"tickets": ["one", "two"]})
    assert capsys.readouterr().out == "0.004 98\n"


def test_scopes_nest_and_names_are_shared(tmp_path: Path) -> None:
    with ModelServer(reply) as server, budget_host(tmp_path, server) as host:
        node = node_from(node_text(), tmp_path, host)
        with vesper.budget(calls=4) as outer:
            with vesper.budget(calls=2, name="nightly") as first:
                assert [node(QUESTION).ok for _ in range(3)] == [True, True, False]
            with vesper.budget(calls=2, name="nightly") as second:
                assert not node(QUESTION).ok
            assert node(QUESTION).ok
        assert (first.used.calls, second.used.calls, outer.used.calls) == (2, 2, 3)


def test_a_scope_holds_in_tasks_and_not_in_new_threads(tmp_path: Path) -> None:
    with ModelServer(reply) as server, budget_host(tmp_path, server) as host:
        node = node_from(node_text(), tmp_path, host)

        async def work() -> tuple[int, Any]:
            async with vesper.budget(calls=5) as spent:
                found = await asyncio.gather(*(node.arun(QUESTION) for _ in range(8)))
                other = threading.Thread(target=node, args=(QUESTION,))
                await asyncio.to_thread(other.start)
                await asyncio.to_thread(other.join)
            return sum(each.ok for each in found), spent.used.calls

        assert asyncio.run(work()) == (5, 5)
        assert len(server.asked) == 6


def test_a_context_of_a_caller_keeps_the_budget() -> None:
    with vesper.budget(calls=5), vesper.run_context(tenant="acme"):
        context = current_context()
        assert context is not None
        assert (context.tenant, len(context.budgets)) == ("acme", 1)
        again = RunContext.from_record(context.to_record())
        assert again == context
    assert current_context() is None


def test_a_scope_without_runs_has_used_nothing() -> None:
    with vesper.budget(time=90, name="empty") as spent:
        pass
    assert spent.used == BudgetAmounts(Decimal(0), 0, 0, timedelta(0))
    assert spent.remaining.time == timedelta(seconds=90)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"usd": 0.1},
        {"usd": "0"},
        {"usd": "0.0000000000001"},
        {"usd": "dear"},
        {"tokens": 0},
        {"calls": True},
        {"time": float("nan")},
        {"calls": 1, "on_exceeded": "explode"},
        {"calls": 1, "alert_at": 2},
        {"calls": 1, "name": ""},
    ],
)
def test_an_amount_that_is_none_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"budget|dollars"):
        vesper.budget(**arguments)
