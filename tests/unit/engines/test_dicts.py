"""Dicts reach the Rust engine by their layout in memory, or by the functions of Python; both come to the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import OrderedDict
from decimal import Decimal
from typing import Any

from tests.support.nodes import PAYMENT_DECISION, ROOT, compiled
from vesper.engines import direct_engine
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.outcome import Returned
from vesper.engines.tiering import ALWAYS

GIVEN: dict[str, Any] = {
    "amount": Decimal("50.00"), "balance": Decimal("100.00"), "currency": "USD", "country": "DE", "user_age_days": 400,
}  # fmt: skip
PROGRAMS = [DirectEngine().load(compiled(PAYMENT_DECISION)), DirectEngine(ALWAYS).load(compiled(PAYMENT_DECISION))]


class Split:
    """Its dict shares a table with those of its kind."""

    def __init__(self) -> None:
        self.amount, self.balance, self.currency = GIVEN["amount"], GIVEN["balance"], GIVEN["currency"]
        self.country, self.user_age_days = GIVEN["country"], GIVEN["user_age_days"]


class Other(dict[str, Any]):
    def __iter__(self) -> Any:
        raise AssertionError("a subclass has no say")

    keys = items = __len__ = __iter__


def with_holes() -> dict[str, Any]:
    made = {"first": 1, **GIVEN, "last": 2}
    del made["first"], made["last"]
    return made


def once_of_numbers() -> dict[Any, Any]:
    made: dict[Any, Any] = {1: 2, **GIVEN}
    del made[1]
    return made


def unusual() -> dict[str, dict[str, Any]]:
    long = {**GIVEN, **dict.fromkeys(map(str, range(500)), 1)}
    for name in map(str, range(500)):
        del long[name]
    return {
        "usual": dict(GIVEN), "split": Split().__dict__, "holes": with_holes(), "numbers": once_of_numbers(),
        "ordered": OrderedDict(GIVEN), "subclass": Other(GIVEN), "once long": long, "copied": long.copy(),
    }  # fmt: skip


def shown() -> list[str]:
    refused: list[dict[Any, Any]] = [{**GIVEN, 1: 2}, {**GIVEN, "more": 2}, {}, dict.fromkeys(map(str, range(300)))]
    found = [f"{name}: {program.call(given)}" for program in PROGRAMS for name, given in unusual().items()]
    for program in PROGRAMS:
        for given in refused:
            try:
                found.append(repr(program.call(given)))
            except TypeError as error:
                found.append(f"{error}")
    return found


def test_every_kind_of_dict_is_read() -> None:
    expected = PROGRAMS[0].call(GIVEN)
    assert isinstance(expected, Returned)
    for program in PROGRAMS:
        for name, given in unusual().items():
            assert repr(program.call(given)) == repr(expected), name


def in_another_process(code: str, access: str | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("VESPER_DICTS", None)
    if access is not None:
        environment["VESPER_DICTS"] = access
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)


def test_layout_and_functions_say_the_same() -> None:
    code = "from tests.unit.engines.test_dicts import *\nprint(direct_engine.dict_access(), *shown(), sep='\\n')"
    found = in_another_process(code, "api")
    assert found.stderr == ""
    access, *lines = found.stdout.splitlines()
    assert access == "api: VESPER_DICTS=api"
    assert lines == "\n".join(shown()).splitlines()


def test_the_layout_is_used_on_every_python_it_is_known_of() -> None:
    is_known = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info[:2] <= (3, 13) and not sys.abiflags
    if "VESPER_DICTS" not in os.environ:
        assert (direct_engine.dict_access() == "layout") is is_known, direct_engine.dict_access()


def test_another_choice_is_refused() -> None:
    found = in_another_process("from vesper.engines import direct_engine as d; d.dict_access()", "quick")
    assert found.returncode != 0
    assert "VESPER_DICTS is `quick`; it is `api`, or not set" in found.stderr
