"""The reader of the General Decimal Arithmetic cases, the rules of what they say, and a sample of them.

All of them run in `make decimal-cases`, which is part of `make test`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.proofs.decimal_cases.dectest import Case, Number, Settings, case_folder, number, read_file
from tests.proofs.decimal_cases.forms import disagreements
from tests.proofs.decimal_cases.mapping import Check, Decimal, Fails, LeftOut, checks_of
from tests.proofs.decimal_cases.run import report, run
from vesper.engines.registry import ENGINES

SAMPLE = ("ddDivide", "dqQuantize", "power", "base", "rounding", "remainderNear")


BY_ZERO = Fails("division_by_zero")


def case(line: str, settings: str = "precision: 9\nrounding: half_up") -> Case:
    (found,) = read_file("test.decTest", f"{settings}\n{line}\n")
    return found


def test_a_case_is_read_with_the_settings_above_it() -> None:
    text = "version: 2.62\nPrecision: 3\nrounding: floor\n-- no\nx1 add '1 ''b' \"-2\" -> 3 Inexact Rounded -- why\n"
    assert list(read_file("f", text)) == [
        Case("f", "x1", "add", ("1 'b", "-2"), "3", frozenset({"inexact", "rounded"}), Settings(3, "floor"))
    ]


@pytest.mark.parametrize("text", ["extended: 0", "colour: red", "x1 add 1 2"])
def test_what_the_reader_does_not_know_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"another arithmetic|unknown directive|neither"):
        list(read_file("f", text))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("1.50", Number(150, -2)),
        ("-.5E+3", Number(-5, 2)),
        ("7.", Number(7, 0)),
        ("-0", Number(0, 0)),
        ("NaN", None),
        ("1 ", None),
        ("", None),
    ],
)
def test_number(text: str, expected: Number | None) -> None:
    assert number(text) == expected


@pytest.mark.parametrize(
    "line, expected",
    [
        ("x add 1.10 2.2 -> 3.30", [("a + b", Decimal(330, 2))]),
        ("x multiply 1E+3 1.00 -> 1.00E+3", [("a * b", Decimal(100000, 2))]),
        ("x divide 1 0 -> Infinity Division_by_zero", [("a / b", BY_ZERO), ("div", BY_ZERO)]),
        ("x divide 2 3 -> 0.666666667 Inexact Rounded", [("div", Decimal(666666667, 9))]),
        ("x add 1234567890 0.1 -> 1.23456789E+9 Inexact Rounded", [("rounded a + b", Decimal(1234567890, 0))]),
        ("x multiply 1E-600 1E-600 -> 1E-1200", [("a * b", Fails("decimal_overflow"))]),
        ("x toSci '1..2' -> NaN Conversion_syntax", [("parse_decimal(t)", Fails("bad_format"))]),
        ("x minus 0.00 -> 0.00", [("-a", Decimal(0, 2))]),
    ],
)  # fmt: skip
def test_what_a_case_says(line: str, expected: list[tuple[str, object]]) -> None:
    found = checks_of(case(line))
    assert isinstance(found, list)
    assert [(check.form, check.expected) for check in found] == expected


@pytest.mark.parametrize(
    "line, reason",
    [
        ("x squareroot 4 -> 2", LeftOut.NO_COUNTERPART),
        ("x add NaN 1 -> NaN", LeftOut.NOT_FINITE),
        ("x canonical #22 -> #22", LeftOut.NOT_A_TEXT),
        ("x add 1E+1000 1 -> 1.00000000E+1000 Inexact Rounded", LeftOut.OUTSIDE_LIMITS),
        ("x multiply 9E+300 9E+300 -> Infinity Overflow Inexact Rounded", LeftOut.CASE_OVERFLOWS),
        ("x quantize 123456789012 0.1 -> NaN Invalid_operation", LeftOut.CASE_PRECISION),
        ("x divide 1E+20 3 -> 3.33333333E+19 Inexact Rounded", LeftOut.TENS_OF_A_QUOTIENT),
        ("x power 2 0.5 -> 1.41421356 Inexact Rounded", LeftOut.ROUNDED_POWER),
        ("x reduce 1234567899 -> 1.23456790E+9 Inexact Rounded", LeftOut.ROUNDED_FIRST),
        ("x samequantum 1E+3 1 -> 0", LeftOut.NEGATIVE_SCALE),
    ],
)
def test_why_a_case_says_nothing(line: str, reason: LeftOut) -> None:
    assert checks_of(case(line)) is reason


def test_a_mode_that_there_is_not() -> None:
    line = "x add 1234567890 0.1 -> 1.23456789E+9 Inexact Rounded"
    assert checks_of(case(line, "precision: 9\nrounding: 05up")) is LeftOut.NO_SUCH_MODE


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "wrong",
    [
        Check("a + b", {"a": Decimal(1, 0), "b": Decimal(2, 0)}, Decimal(4, 0)),
        Check("a + b", {"a": Decimal(1, 0), "b": Decimal(2, 0)}, Decimal(30, 1)),
        Check("a + b", {"a": Decimal(1, 0), "b": Decimal(2, 0)}, Fails("decimal_overflow")),
        Check("a / b", {"a": Decimal(1, 0), "b": Decimal(0, 0)}, Decimal(1, 0)),
        Check("a == 0", {"a": Decimal(1, 0)}, True),
        Check("quot(m, n)", {"m": 7, "n": 2}, 4),
    ],
)
def test_a_wrong_value_scale_or_end_is_a_disagreement(wrong: Check, engine: str) -> None:
    right = replace(wrong, form="comparisons", expected=(False, True, True, True, False, False),
                    arguments={"a": Decimal(1, 0), "b": Decimal(2, 0)})  # fmt: skip
    assert [each.check for each in disagreements([right, wrong], {engine: ENGINES[engine]})] == [wrong]


def test_a_sample_of_the_cases_agrees(tmp_path: Path) -> None:
    for name in SAMPLE:
        source = case_folder() / f"{name}.decTest"
        (tmp_path / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    tally = run(tmp_path, ENGINES)
    assert tally.disagreements == [], report(tally, ENGINES, 0)
    assert tally.mapped.total() > 3000, report(tally, ENGINES, 0)
