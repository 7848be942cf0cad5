"""Decimals over the boundary to Rust: by their layout in memory, and as text; both are the same to everybody."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from decimal import Context, Decimal, Inexact, localcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.nodes import ROOT, small_node
from vesper.engines import direct_engine
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES

NODE = small_node("x: decimal", "- operation: return\n  success: {result: x}")
PROGRAM = direct_engine.DirectEngine().load(NODE)
REFERENCE = ENGINES["python"].load(NODE)

SAMPLES = [
    "0", "-0", "0.00", "-0.00", "1", "-1", "9.99", "1E+3", "0E+9", "1E-1000", "1E-1001", "1E+999", "1E+1000",
    "1" + "0" * 18, "9" * 19, "1" + "0" * 19, "-" + "9" * 38, "1" + "0" * 38, "9" * 39, "1234567" * 10 + "123456",
    "7" * 77,
    "1." + "3" * 999, "1." + "3" * 1001, "170141183460469231731687303715884105727",
    "-170141183460469231731687303715884105728", "170141183460469231731687303715884105728",
    "NaN", "-NaN", "sNaN", "NaN123", "Infinity", "-Infinity",
]  # fmt: skip


def shown(number: Any) -> str:
    """All that an outcome says of a number."""
    outcome = PROGRAM.call({"x": number})
    if isinstance(outcome, Returned):
        result = outcome.value["result"]
        assert type(result) is Decimal
        return f"{result!r} {result.as_tuple()} {hash(result)} {result.__sizeof__()} {result == number}"
    assert isinstance(outcome, Failed)
    return str([str(each.kind) for each in outcome.problems])


def in_another_process(code: str, access: str | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("VESPER_DECIMALS", None)
    if access is not None:
        environment["VESPER_DECIMALS"] = access
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)


SAY_ALL = """
from decimal import Decimal
from tests.unit.engines.test_decimals import SAMPLES, direct_engine, shown
print(direct_engine.decimal_access())
for text in SAMPLES:
    print(text, shown(Decimal(text)))
"""


def test_layout_and_text_say_the_same_of_every_sample() -> None:
    by_layout, as_text = in_another_process(SAY_ALL, None), in_another_process(SAY_ALL, "text")
    assert (by_layout.stderr, as_text.stderr) == ("", "")
    access, *layout_lines = by_layout.stdout.splitlines()
    said, *text_lines = as_text.stdout.splitlines()
    assert said == "text: VESPER_DECIMALS=text"
    assert access == "layout" or access.startswith("text: "), access
    assert layout_lines == text_lines
    assert len(text_lines) == len(SAMPLES)


def test_the_layout_is_used_on_every_python_it_is_known_of() -> None:
    is_known = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info[:2] <= (3, 13) and not sys.abiflags
    found = in_another_process("from vesper.engines import direct_engine as d; print(d.decimal_access())", None)
    assert (found.stdout.strip() == "layout") is is_known, found.stdout + found.stderr


def test_another_choice_is_refused() -> None:
    found = in_another_process("import vesper._direct", "quick")
    assert found.returncode != 0
    assert "VESPER_DECIMALS is `quick`; it is `text`, or not set" in found.stderr


@pytest.mark.parametrize("text", SAMPLES)
def test_the_engines_agree_on_every_sample(text: str) -> None:
    direct, reference = PROGRAM.call({"x": Decimal(text)}), REFERENCE.call({"x": Decimal(text)})
    assert direct == reference
    if isinstance(direct, Returned) and isinstance(reference, Returned):
        assert repr(direct.value) == repr(reference.value)


@given(st.decimals(), st.integers(-60, 60))
def test_the_engines_agree_on_any_decimal(number: Decimal, shift: int) -> None:
    with localcontext(Context(prec=2000)):
        moved = number.scaleb(shift) if number.is_finite() else number
    direct, reference = PROGRAM.call({"x": moved}), REFERENCE.call({"x": moved})
    assert repr(direct) == repr(reference)


def test_numbers_that_are_computed_and_shared_are_read_too() -> None:
    with localcontext(Context(prec=300)):
        # Longer than what lies in the object on the way, short at the end.
        computed = (Decimal("1." + "7" * 200) * 10**200 + 5) / 10**198
        short = computed.quantize(Decimal("0.01"))
    for number in (short, -short, abs(-short), short.copy_negate(), Decimal(5) / 2, Decimal(2) ** 90):
        outcome = PROGRAM.call({"x": number})
        assert isinstance(outcome, Returned)
        assert repr(outcome.value["result"]) == repr(number)


def test_what_is_made_is_a_decimal_like_any_other() -> None:
    made = PROGRAM.entry({"x": Decimal("-12345678901234567890.125")})["result"]
    usual = Decimal("-12345678901234567890.125")
    assert gc.is_tracked(made) == gc.is_tracked(usual)
    assert sys.getrefcount(made) == sys.getrefcount(usual)
    assert hash(made) == hash(usual)
    with localcontext(Context(prec=100)):
        assert made * made + 1 == usual * usual + 1
        assert made / 7 == usual / 7
    assert f"{made:,.2f}" == f"{usual:,.2f}"
    assert {made: 1}[usual] == 1
    del made
    gc.collect()


def test_subclasses_and_other_decimals_are_not_read_by_layout() -> None:
    class Money(Decimal):
        def __str__(self) -> str:
            return "999"

    assert shown(Money("1.50")) == shown(Decimal("1.50"))
    pure = __import__("_pydecimal").Decimal("1.50")
    outcome = PROGRAM.call({"x": pure})
    assert isinstance(outcome, Failed)
    assert str(outcome.problems[0].kind) == "wrong_type"


def test_the_context_of_the_caller_changes_nothing() -> None:
    with localcontext(Context(prec=1, traps=[Inexact])):
        assert shown(Decimal("123.456")).startswith("Decimal('123.456')")
    strict = "import decimal; decimal.getcontext().prec = 1; decimal.getcontext().traps[decimal.Inexact] = True\n"
    found = in_another_process(
        strict + "from vesper.engines import direct_engine as d; print(d.decimal_access())", None
    )
    assert found.stderr == ""
