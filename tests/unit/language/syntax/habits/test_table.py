"""The table of habits: every row names something of the language, and every form translates to an expression."""

from __future__ import annotations

import pytest

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax import shapes
from vesper.language.syntax.habits import table
from vesper.language.syntax.habits.forms import FUNCTION_NAMES, respell
from vesper.language.syntax.habits.type_forms import respell_type


def test_rows_name_what_exists() -> None:
    assert {name for names in table.FUNCTIONS.values() for name in names} - {"NOT"} <= FUNCTION_NAMES
    assert set(table.OPERATIONS.values()) <= set(shapes.STEPS)
    assert set(table.FIELDS["a node"].values()) <= {*shapes.NODE.required, *shapes.NODE.optional}


@pytest.mark.parametrize(
    "written, meant",
    [
        ("a > 1 ? 1 : b ? 2 : 3", "IF a > 1 THEN 1 ELSE IF b THEN 2 ELSE 3"),
        ("a * b // c", "div_floor(a * b, c)"),
        ("a ** b ** c", "pow(a, pow(b, c))"),
        ("x between 1 and 10 and b", "x IN [1..10] AND b"),
        ("1 + IF(a, IF(b, 1, 2), 3)", "1 + (IF a THEN IF b THEN 1 ELSE 2 ELSE 3)"),
        ("a if c else b if d else e", "IF c THEN a ELSE IF d THEN b ELSE e"),
        ("name.strip().upper()", "upper(trim(name))"),
        ("ok &| ok", "ok &| ok"),
    ],
)
def test_translation_keeps_the_meaning(written: str, meant: str) -> None:
    assert respell(written).translation() == meant


@pytest.mark.parametrize(
    "written, meant",
    [
        ("list[decimal]", "array<decimal>"),
        ("string | null", "optional<string>"),
        ("Dict<str, int[]>", "map<string, array<integer>>"),
        ("float | int", None),
        ("list", None),
        ("decimal", None),
    ],
)
def test_types(written: str, meant: str | None) -> None:
    assert respell_type(written) == meant


def test_a_fault_hides_no_other_problem_and_brings_none() -> None:
    from vesper.compiler import compile_source

    text = "node_id: t_v1\ntype: function\nintent: T\ninputs:\n  qty: integer\n  paid boolean\noutputs:\n  success:\n"
    text += "    r: integer\nflow:\n  - operation: return\n    when: paid\n    success: {r: qyt}\n"
    bag: DiagnosticBag = compile_source(SourceFile("t_v1.vsp", text))[1]
    assert [each.code.number for each in bag.sorted()] == ["VSP0002", "VSP1102"]
