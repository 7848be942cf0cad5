"""An application that uses every public name of `vesper`, as a type checker with the stubs of its nodes sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal, assert_type

import vesper
from vesper.testing import Recorder, Replay, Stubs, fixed_sources

if TYPE_CHECKING:
    from vesper_nodes import payment_decision_v1 as payments
    from vesper_nodes.payment_decision_v1 import Inputs, Outputs

node = vesper.load("payment_decision")
PAYMENT: Inputs = {"amount": Decimal(1), "balance": 1, "currency": "EUR", "country": "FR", "user_age_days": 1}


def call() -> Decimal:
    """Keywords, a dict, an object or JSON text."""
    outcome = node(amount="9.99", balance=100, currency="USD", country="DE", user_age_days=400)
    assert_type(outcome["fee"], Decimal)
    assert_type(outcome.fee, Decimal)
    assert_type(outcome.unwrap()["risk"], int)
    assert_type(outcome["decision"], Literal["approve", "review", "decline"])
    assert_type(outcome.trace_id, str)
    assert_type(node.run_json(b"{}"), bytes)
    returned: Outputs = node.call(PAYMENT)
    assert_type(node.map([PAYMENT])[0]["fee"], Decimal)
    assert_type(node.map([PAYMENT, "{}"], outcomes=True)[0].fee, Decimal)
    return returned["fee"] + node('{"amount": 1}').unwrap()["fee"] + node(PAYMENT).fee


def decide(outcome: payments.Outcome) -> str:
    """The forms that both type checkers narrow."""
    if outcome:
        assert_type(outcome.value["fee"], Decimal)
    else:
        assert_type(outcome.error, vesper.ErrorInfo)
    if outcome.error is None:
        assert_type(outcome.value["fee"], Decimal)
    else:
        assert_type(outcome.error.code, str)
    if outcome.ok is True:
        return outcome.value["decision"]
    problems = outcome.error.problems
    assert_type(problems, tuple[vesper.InputProblem, ...])
    return outcome.error.message


def classes() -> payments.Output:
    """Dataclasses of the node."""
    given = node.Input(amount=Decimal(1), balance=Decimal(2), currency="EUR", country="FR", user_age_days=1)
    assert_type(given, payments.Input)
    assert_type(given.flagged, bool)
    return node.as_output(node(given))


@dataclass
class Line:
    sku: str
    qty: int
    price: Decimal
    tags: frozenset[str]


def basket() -> int:
    """Records, maps and enums."""
    shop = vesper.load("basket", nodes="nodes", engine="interp", limits=vesper.Limits(seconds=1.0))
    prices: dict[Literal["new", "sale"], Decimal] = {"new": Decimal(1)}
    shop(lines=[Line("a", 1, Decimal(1), frozenset())], kind="trade", rates=prices, days={date(2026, 1, 1): 1})
    line = shop.Input.Line(sku="a", qty=1, price=Decimal(1), tags=frozenset({"new"}))
    given = shop.Input(lines=[line], kind="retail", rates={}, days={})
    assert_type(given.lines[0].note, str | None)
    return shop.call({"lines": [], "kind": "trade", "rates": {}, "days": {}})["value"] + shop(given)["value"]


def clock() -> datetime:
    stamp = vesper.load("stamp", results=False, isolation="none")
    assert_type(stamp(now=datetime.now(UTC))["at"], datetime)
    assert_type(stamp.mode, str | None)
    return stamp.call({}, now=datetime.now(UTC))["at"]


async def wait() -> Decimal:
    outcome = await node.arun(PAYMENT)
    return outcome.fee


def odd() -> None:
    """Names that Python uses otherwise."""
    strange = vesper.load("odd")
    result = strange(
        date=date(2026, 1, 1), until="2026-01-02", self="s", int=3, free={"a": [1, None]}, far=2, more={},
        many=[{"date": "2026-01-01", "until": date(2026, 1, 1), "str": "s", "list": ["a"], "class": 1}],
    )  # fmt: skip
    assert_type(result["value"], str)
    assert_type(result["overload"], int)
    assert_type(result.until, date)
    assert_type(result["many"][0]["until"], date)
    assert_type(result["many"][0]["list"], list[str])
    assert_type(result["dict"], dict[str, list[int]])
    assert_type(result["more"], dict[date, frozenset[str]])
    if result.one is not None:
        assert_type(result.one["more"], bytes)
    assert_type(strange.as_output(result).many[0].class_, int)


def tables(table: list[int]) -> list[int]:
    return node.run_batch(table, keep=["id"], decimals={"fee": 2}, threads=1, error_column="problem")


def describe(any_node: vesper.Node) -> list[str]:
    fields: list[vesper.Field] = list(any_node.inputs.values())
    explanation: vesper.Explanation = any_node(x=1).explain(nearest=False)
    period: vesper.Period = vesper.Period(14)
    return [any_node.source, any_node.intent, explanation.text, str(period), *(each.type for each in fields)]


@vesper.effect("print_label", request={"text": "string"}, response="string")
def print_label(text: str) -> str:
    if not text:
        raise vesper.EffectFailed("empty", "a label has a text")
    return text


def effects(host: vesper.Host, routes: vesper.Routes) -> str:
    """A node with effects: on a Host, step by step, in tests."""
    greet = vesper.load("greet_v1", host=host, engine="auto", routes=routes)
    with vesper.run_context(actor="ann", key="order-1") as report:
        outcome = greet(event_id="e", now=datetime.now(UTC))
    assert_type(report.execution, str | None)
    assert_type(outcome.text, str)
    run = greet.start({"event_id": "e"})
    assert_type(run, vesper.Execution)
    if run.request is not None:
        run.answer("Ann")
    if run.outcome is not None and run.outcome:
        assert_type(run.outcome.value, dict[str, object])  # type: ignore[assert-type]  # a dict of any values
    stubbed = vesper.load("greet", host=Stubs(tick=timedelta(seconds=1)))
    assert_type(stubbed(event_id="e").ok, bool)
    return outcome.unwrap()["text"]


def doubles() -> tuple[object, ...]:
    return Recorder, Replay, fixed_sources, vesper.testing.NOON


def adopted() -> Callable[..., dict[str, object]]:
    def decide_by_hand(**_: object) -> dict[str, object]:
        return {}

    return vesper.adopt(decide_by_hand, "payment_decision")


def failures() -> str:
    """Every exception is a `VesperError`."""
    try:
        vesper.load(Path("nodes/elsewhere.vsp"), overlay="overlay.toml").call({})
    except vesper.UnknownNode as unknown:
        return str(unknown)
    except (vesper.NodeError, vesper.ConfigError, vesper.JournalError, vesper.BatchError, vesper.NotExplained):
        return "set-up"
    except vesper.BadInput as refused:
        return str(refused.problems)
    except (vesper.ContractBroken, vesper.DeclaredError) as ended:
        return str(ended.values)
    except (vesper.KeyReused, vesper.KeyRunning, vesper.InDoubt) as doubt:
        return str(doubt.execution)
    except (vesper.Raised, vesper.Stopped):
        return "stopped"
    except vesper.VesperError:
        return "other"
    general: vesper.Outcome[dict[str, object]] | None = None
    return f"{general} {vesper.cache_stats()} {vesper.joined}"


if __name__ == "__main__":
    asyncio.run(wait())
