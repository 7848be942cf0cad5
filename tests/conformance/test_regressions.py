"""Inputs on which the engines once disagreed: they must agree now. The folder may be empty; the reader is tested
either way."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from tests.support.nodes import PAYMENT_DECISION, compiled, worked_nodes
from vesper.engines.compare import Agree, compare
from vesper.engines.engine import Done, run_observed
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.verify.differential import Difference
from vesper.verify.regressions import save_regression

FOLDER = Path(__file__).parent / "regressions"
CASES: list[dict[str, Any]] = [
    case for path in sorted(FOLDER.glob("*.yaml")) for case in yaml.safe_load(path.read_text(encoding="utf-8"))
]


_NAMES = {"Decimal": Decimal, "datetime": dt, "inf": float("inf"), "nan": float("nan"), "bytearray": bytearray}
"""What the `repr` of an input may mention."""


def read_value(form: dict[str, Any]) -> object:
    ((kind, value),) = form.items()
    if kind == "decimal":
        return Decimal(value)
    if kind == "null":
        return None
    if kind == "array":
        return [read_value(item) for item in value]
    if kind == "dict":
        return {key: read_value(item) for key, item in value.items()}
    if kind == "python":
        return eval(value, {"__builtins__": {}}, _NAMES)
    return value


def agreement(case: dict[str, Any]) -> list[object]:
    beside = sorted(FOLDER.glob("*.vsp"))  # random programs are kept with their cases
    path = next((path for path in [*worked_nodes(), *beside] if path.stem == case["node"]), None)
    assert path is not None, f"{case['node']} is not a worked node; move the case beside its own node"
    node = compiled(path)
    inputs = {name: read_value(form) for name, form in case["inputs"].items()}
    reference, *others = (run_observed(engine.load(node), inputs) for engine in ENGINES.values())
    return [compare(reference, other) for other in others]


def test_engines_agree_on_every_kept_input() -> None:
    broken = [case for case in CASES if not all(isinstance(result, Agree) for result in agreement(case))]
    assert broken == []


def test_a_saved_case_can_be_read_back(tmp_path: Path) -> None:
    inputs: dict[str, object] = {
        "amount": Decimal("0.10"),
        "balance": Decimal("NaN"),
        "currency": "USD",
        "country": "\ud800",
        "user_age_days": 10**30,
        "flagged": None,
    }
    done = Done(Returned({}), ())
    difference = Difference(inputs, 1, {"python": done, "interp": done}, None, None)
    node = compiled(PAYMENT_DECISION)
    first = save_regression(tmp_path, node, difference)
    assert save_regression(tmp_path, node, difference) == first, "the same input is kept once"
    (case,) = yaml.safe_load(first.read_text(encoding="utf-8"))
    read = {name: read_value(form) for name, form in case["inputs"].items()}
    assert repr(read) == repr(inputs)
    assert all(isinstance(result, Agree) for result in agreement(case))
