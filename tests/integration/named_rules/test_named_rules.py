"""Eight rules, each as a node and as readable Python: the same results, and at most half as many lines again."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable
from dataclasses import asdict
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.integration.named_rules.tournament_table import Match
from tests.integration.named_rules.tree_totals import Department

HERE = Path(__file__).parent
NODES = Path(__file__).parents[3] / "nodes" / "rules"
MAX_RATIO = 1.5
TRIES = 150

Inputs = dict[str, Any]


def money(source: random.Random, limit: int) -> Decimal:
    edge = source.choice((0, 100, 500, 1000, 5000, limit))
    near = Decimal(edge) + source.choice((Decimal("-0.01"), Decimal(0), Decimal("0.01")))
    drawn = Decimal(source.randrange(limit * 100)).scaleb(-2)
    return max(near, Decimal(0)) if source.random() < 0.4 else drawn


def collect_discounts(source: random.Random) -> Inputs:
    return {
        "total": money(source, 800),
        "pieces": source.randrange(40),
        "is_member": source.random() < 0.5,
        "country": source.choice(("DE", "FR", "US")),
        "coupon": source.choice((None, "WELCOME", "OTHER")),
    }


def risk_priority(source: random.Random) -> Inputs:
    return {
        "amount": money(source, 7000),
        "country": source.choice(("DE", "KP", "IR", "NG", "RU")),
        "account_days": source.randrange(15),
        "attempts": source.randrange(8),
    }


def social_security(source: random.Random) -> Inputs:
    return {"income": money(source, 90000), "day": date(2022, 6, 1) + timedelta(days=source.randrange(1300))}


def carrier_choice(source: random.Random) -> Inputs:
    order = {
        "zone": source.choice(("city", "land", "world", "moon")),
        "weight_kg": money(source, 50),
        "carrier": None,
        "shipping": None,
        "gift": source.random() < 0.5,
        "note": source.choice(("", "ring twice")),
    }
    return {"order": order}


def tax_credit(source: random.Random) -> Inputs:
    return {
        "status": source.choice(("single", "married")),
        "income": money(source, 200000) + source.choice((0, 75000)),
        "children": source.randrange(5),
        "tax": money(source, 6000),
    }


def tournament_table(source: random.Random) -> Inputs:
    teams = ["ajax", "bonn", "como", "dijon"]
    pairs = [source.sample(teams, 2) for _ in range(source.randrange(9))]
    return {"matches": [Match(home, away, source.randrange(4), source.randrange(4)) for home, away in pairs]}


def tree_totals(source: random.Random) -> Inputs:
    def tree(levels: int) -> Department:
        parts = [tree(levels - 1) for _ in range(source.randrange(3))] if levels else []
        return Department(source.choice("abcdef"), source.randrange(20), parts)

    return {"tree": tree(source.randrange(5)), "limit": source.randrange(40)}


def change_making(source: random.Random) -> Inputs:
    coins = source.sample((1, 2, 5, 10, 20, 50, 100), source.randrange(8))
    return {"cents": source.randrange(400), "till": {coin: source.randrange(6) for coin in coins}}


RULES: tuple[Callable[[random.Random], Inputs], ...] = (
    collect_discounts,
    risk_priority,
    social_security,
    carrier_choice,
    tax_credit,
    tournament_table,
    tree_totals,
    change_making,
)


def plain_result(name: str, inputs: Inputs) -> Inputs | str:
    """Return the outputs of the Python function, or the code with which it ends."""
    rule = getattr(importlib.import_module(f"tests.integration.named_rules.{name}"), name)
    try:
        found: Inputs = rule(**inputs)
    except ValueError as error:
        return str(error)
    return found


def node_result(node: vesper.Node, inputs: Inputs) -> Inputs | str:
    if "order" in inputs:  # unknown keys of a record are kept in JSON
        answer = json.loads(node.run_json(json.dumps(inputs, default=str).encode()))
        return str(answer["code"]) if "code" in answer else answer["value"]
    given = {name: [asdict(item) for item in each] if name == "matches" else each for name, each in inputs.items()}
    if isinstance(given.get("tree"), Department):
        given["tree"] = asdict(given["tree"])
    outcome = node(**given)
    if outcome.error is not None:
        return outcome.error.code
    return outcome.unwrap()


@pytest.mark.parametrize("draw", RULES, ids=lambda each: each.__name__)
def test_the_node_gives_what_python_gives(draw: Callable[[random.Random], Inputs]) -> None:
    source = random.Random(draw.__name__)
    nodes = [vesper.load(NODES / f"{draw.__name__}_v1.vsp", engine=engine) for engine in ("python", "interp")]
    kinds = set()
    for _ in range(TRIES):
        inputs = draw(source)
        expected = plain_result(draw.__name__, inputs)
        kinds.add(type(expected))
        if "order" in inputs and isinstance(expected, dict):
            expected = json.loads(json.dumps(expected, default=str))
        for node in nodes:
            assert node_result(node, inputs) == expected, inputs
    assert dict in kinds


def lines_of(text: str) -> int:
    """Count the lines that are neither blank nor comments."""
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in text.splitlines())


@pytest.mark.parametrize("draw", RULES, ids=lambda each: each.__name__)
def test_the_node_has_at_most_half_as_many_lines_again(draw: Callable[[random.Random], Inputs]) -> None:
    python = lines_of((HERE / f"{draw.__name__}.py").read_text(encoding="utf-8"))
    node = (NODES / f"{draw.__name__}_v1.vsp").read_text(encoding="utf-8").partition("\ntesting:")[0]
    assert lines_of(node) <= MAX_RATIO * python, f"{lines_of(node)} lines against {python} of Python"
