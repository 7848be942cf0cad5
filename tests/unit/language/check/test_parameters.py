"""Parameters: the value in force at a date, scales, and what is refused."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.support.nodes import compiled_text
from vesper.compiler import compile_source
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.ir.decode import decode
from vesper.values.generated.errors import ErrorCode

VAT = """\
vat:
  type: decimal
  unit: "1"
  reference: VAT Act
  since:
    2007-01-01: 0.19
    2020-07-01: {value: 0.16, reference: Relief Act}
    2021-01-01: 0.19
    2030-01-01: null
    2031-01-01: 0.2
"""
SCALES = """\
pension:
  scale: marginal
  since:
    2024-01-01: [{from: 0, rate: 0}, {from: 100, rate: 0.1}, {from: 200, rate: 0.25}]
fee:
  scale: single_amount
  since:
    2024-01-01: [{from: 10, amount: 5}, {from: 100, amount: 7.5}]
"""


def node(parameters: str, value: str, rest: str = "") -> str:
    return "\n".join(
        [
            "node_id: test_v1",
            "type: function",
            "intent: Test",
            "inputs: {day: date, x: decimal}",
            "outputs: {success: {r: decimal}}",
            "parameters:",
            *(f"  {line}" for line in parameters.splitlines()),
            *rest.splitlines(),
            "flow:",
            f"  - {{step: r, operation: compute, value: {value!r}}}",
            "  - {operation: return, success: [r]}",
            "",
        ]
    )


def problems(text: str) -> list[tuple[str, str]]:
    _, bag = compile_source(SourceFile("test.vsp", text))
    return [(each.code.title, each.headline) for each in bag.sorted()]


@pytest.mark.parametrize("engine", ENGINES)
def test_value_in_force(engine: str) -> None:
    program = ENGINES[engine].load(compiled_text(node(VAT, "x * vat AT day")))

    def at(text: str) -> Any:
        outcome = program.call({"day": date.fromisoformat(text), "x": Decimal(100)})
        return outcome.value["r"] if isinstance(outcome, Returned) else outcome

    assert at("2007-01-01") == at("2020-06-30") == at("2021-01-01") == at("2029-12-31") == Decimal("19.00")
    assert at("2020-07-01") == at("2020-12-31") == Decimal("16.00")
    assert at("9999-12-31") == Decimal("20.0")
    for text in ("2006-12-31", "0001-01-01", "2030-01-01", "2030-12-31"):
        outcome = at(text)
        assert isinstance(outcome, Failed), text
        assert outcome.code == ErrorCode.NOT_IN_FORCE, text


@pytest.mark.parametrize("engine", ENGINES)
def test_every_number_of_entries(engine: str) -> None:
    chance = random.Random(5)
    for count in (1, 2, 3, 4, 5, 8, 13):
        days = sorted(chance.sample(range(400), count))
        dates = [date(2024, 1, 1) + timedelta(day) for day in days]
        entries = [f"    {day.isoformat()}: {number}" for number, day in enumerate(dates)]
        program = ENGINES[engine].load(
            compiled_text(node("\n".join(["p:", "  type: decimal", "  since:", *entries]), "p AT day"))
        )
        for offset in {each + shift for each in days for shift in (-1, 0, 1)} | {0, 401}:
            day = date(2024, 1, 1) + timedelta(offset)
            wanted = sum(each <= day for each in dates) - 1
            outcome = program.call({"day": day, "x": Decimal(0)})
            if wanted < 0:
                assert isinstance(outcome, Failed)
            else:
                assert outcome == Returned({"r": Decimal(wanted)})


@pytest.mark.parametrize("engine", ENGINES)
def test_scales(engine: str) -> None:
    day = date(2024, 6, 1)
    marginal = ENGINES[engine].load(compiled_text(node(SCALES, "marginal(x, pension AT day)", _idle("fee"))))
    single = ENGINES[engine].load(compiled_text(node(SCALES, "single_amount(x, fee AT day)", _idle("pension"))))
    for amount, tax, fee in (
        ("-5", "0", "0"), ("0", "0", "0"), ("9.99", "0", "0"), ("10", "0", "5"), ("99.99", "0", "5"),
        ("100", "0", "7.5"), ("150", "5.0", "7.5"), ("200", "10.0", "7.5"), ("200.4", "10.100", "7.5"),
    ):  # fmt: skip
        inputs = {"day": day, "x": Decimal(amount)}
        assert marginal.call(inputs) == Returned({"r": Decimal(tax)})
        assert single.call(inputs) == Returned({"r": Decimal(fee)})


def _idle(parameter: str) -> str:
    """Return a contract that uses the other parameter, so that none is idle."""
    return f"contracts: {{preconditions: [\"length({parameter} AT date('2024-02-01')) > 0\"]}}"


def test_source_names_the_uses() -> None:
    compiled = compiled_text(node(VAT, "x * vat AT day + vat AT date('2008-01-01')"))
    first, second = compiled.node.source.parameters
    assert (first.name, first.unit, first.reference) == ("vat", "1", "VAT Act")
    assert first.entries[:2] == (("2007-01-01", None), ("2020-07-01", "Relief Act"))
    table = compiled.node.expressions()
    for use in (first, second):
        found = table[use.at]
        assert isinstance(found, ir.Let)
        assert isinstance(found.body, ir.Call)
        assert found.body.op == "optional.in_force"
    assert decode(compiled.ir) == compiled.node


def test_prose_is_no_part_of_the_semantic_hash() -> None:
    first = compiled_text(node(VAT, "vat AT day")).semantic_hash
    assert compiled_text(node(VAT.replace("VAT Act", "Another"), "vat AT day")).semantic_hash == first
    assert compiled_text(node(VAT.replace("0.16", "0.17"), "vat AT day")).semantic_hash != first


def test_at_is_no_reserved_word() -> None:
    text = node(VAT, "IF x > 1 THEN vat AT day ELSE 0")
    text = text.replace("x: decimal}", "x: decimal, at: 'enum[DE, AT]'}")
    assert problems(text.replace("x > 1", "at == AT OR at != AT AND x IN [1, x]")) == []


@pytest.mark.parametrize(
    "parameters, value, expected",
    [
        (VAT, "vat", "expected a value, found a parameter without date"),
        (VAT, "vax AT day", "no parameter is named `vax`"),
        (VAT, "x AT day", "no parameter is named `x`"),
        (VAT, "vat AT x", "expected date, found decimal"),
        (VAT.replace("2021-01-01", "2020-07-01 "), "vat AT day", "`2020-07-01` is given twice in the same mapping"),
        (VAT.replace("2021-01-01", "2019-01-01"), "vat AT day", "`2019-01-01` is not a date after 2020-07-01"),
        (VAT.replace("2021-01-01", "2021-02-29"), "vat AT day", "`2021-02-29` is not a date"),
        (VAT.replace("0.16", "low"), "vat AT day", "`low` is not a value of type decimal"),
        (VAT.replace("decimal", "optional<decimal>"), "vat AT day", "expected a type without null"),
        (VAT.replace("  type: decimal\n", ""), "vat AT day", "`vat` must be `type` or `scale`, not neither"),
        (SCALES.replace("from: 100, rate", "from: 0, rate"), "x", "`{from: 0, rate: 0.1}` is not a bracket"),
        (SCALES.replace("rate: 0.1}", "amount: 0.1}"), "x", "has no field `amount`"),
        (SCALES, "marginal(x, fee AT day)", "expected array<{from: decimal, rate: decimal}>"),
        (SCALES, "marginal(x)", "`marginal` takes 2 arguments, not 1"),
    ],
)
def test_refused(parameters: str, value: str, expected: str) -> None:
    found = problems(node(parameters, value))
    assert any(expected in headline for _, headline in found), found


def test_hostile_number_of_uses_is_refused() -> None:
    entries = "".join(f"    {1000 + number}-01-01: {number}\n" for number in range(2000))
    parameters = f"p:\n  type: decimal\n  since:\n{entries}"
    assert {code for code, _ in problems(node(parameters, "p AT day + p AT day"))} == {"unused-value"}  # the input
    assert [code for code, _ in problems(node(parameters, " + ".join(["p AT day"] * 9)))] == ["too-large"]
