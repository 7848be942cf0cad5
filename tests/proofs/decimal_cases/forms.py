"""The nodes that the cases run through: one for each form of call, over an array of arguments, compiled once."""

from __future__ import annotations

import decimal
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tests.proofs.decimal_cases.mapping import Argument, Check, Decimal, Fails
from tests.support.nodes import expression_node
from vesper.compiler import Compiled
from vesper.engines.engine import Engine, Program
from vesper.engines.outcome import Failed, Outcome, Returned
from vesper.values.types import DECIMAL, INTEGER, STRING, ArrayOf, Enum, Record, Type

_MODE = Enum(("half_even", "half_up", "half_down", "up", "down", "floor", "ceiling"))
_TYPES: dict[str, Type] = {
    "a": DECIMAL, "b": DECIMAL, "c": DECIMAL, "m": INTEGER, "n": INTEGER, "s": INTEGER, "mode": _MODE, "t": STRING,
}  # fmt: skip

# What stands for a form in the language, where that is not its name; names of arguments become fields of `x`.
_SPELT = {
    "comparisons": "[a == b, a != b, a < b, a <= b, a > b, a >= b]",
    "div": "div(a, b, s, mode)",
}
_NOT_DECIMAL = frozenset(
    {"comparisons", "floor(a)", "ceil(a)", "trunc(a)", "scale(a) == scale(b)", "a == 0", "quot(m, n)", "rem(m, n)"}
)
_BATCH = 2000


@dataclass(frozen=True, slots=True)
class Disagreement:
    engine: str
    check: Check
    got: str


@cache
def node(form: str, names: tuple[str, ...]) -> Compiled:
    """Takes `cases`, an array of records; gives what the form makes of each, decimals with their text."""
    inner = form.removeprefix("rounded ")
    spelt = _SPELT.get(inner, inner)
    if inner != form:
        spelt = f"round({spelt}, s, mode)"
    binding = ", ".join(f"{name} = x.{name}" for name in names)
    answer = spelt if form in _NOT_DECIMAL else f"LET r = {spelt} IN {{value: r, shown: text(r)}}"
    record = Record(tuple((name, _TYPES[name]) for name in names))
    return expression_node(f"[LET {binding} IN {answer} FOR x IN cases]", {"cases": ArrayOf(record)})


def disagreements(checks: Iterable[Check], engines: Mapping[str, Engine]) -> list[Disagreement]:
    """Every check on every engine."""
    by_form: dict[tuple[str, tuple[str, ...]], list[Check]] = defaultdict(list)
    for check in checks:
        by_form[check.form, tuple(check.arguments)].append(check)
    found: list[Disagreement] = []
    for (form, names), group in by_form.items():
        for name, engine in engines.items():
            program = engine.load(node(form, names))
            # One that fails ends its whole batch, so what must fail is called by itself.
            failing = [check for check in group if isinstance(check.expected, Fails)]
            returning = [check for check in group if not isinstance(check.expected, Fails)]
            for check in failing:
                found += _one(name, program, check)
            for start in range(0, len(returning), _BATCH):
                found += _batch(name, program, returning[start : start + _BATCH])
    return found


def _batch(engine: str, program: Program, checks: Sequence[Check]) -> list[Disagreement]:
    outcome = _called(program, checks)
    results = _results(outcome)
    if results is None or len(results) != len(checks):
        return [each for check in checks for each in _one(engine, program, check)]
    return [
        Disagreement(engine, check, shown)
        for check, result in zip(checks, results, strict=True)
        if (shown := _difference(check, result)) is not None
    ]


def _one(engine: str, program: Program, check: Check) -> list[Disagreement]:
    outcome = _called(program, [check])
    results = _results(outcome)
    if isinstance(check.expected, Fails):
        as_expected = isinstance(outcome, Failed) and str(outcome.code) == check.expected.code
        return [] if as_expected else [Disagreement(engine, check, str(outcome))]
    difference = str(outcome) if results is None else _difference(check, results[0])
    return [] if difference is None else [Disagreement(engine, check, difference)]


def _called(program: Program, checks: Sequence[Check]) -> Outcome:
    return program.call({"cases": [{n: _given(v) for n, v in check.arguments.items()} for check in checks]})


def _given(argument: Argument) -> object:
    if not isinstance(argument, Decimal):
        return argument
    digits = tuple(int(digit) for digit in str(abs(argument.coefficient)))
    return decimal.Decimal((int(argument.coefficient < 0), digits, -argument.scale))


def _results(outcome: Outcome) -> Sequence[object] | None:
    results = outcome.value["result"] if isinstance(outcome, Returned) else None
    return results if isinstance(results, list) else None


def _difference(check: Check, result: object) -> str | None:
    """What came back, where it is not what must come back."""
    expected = check.expected
    if isinstance(expected, Decimal):
        assert isinstance(result, dict)
        value = result["value"]
        sign, digits, exponent = value.as_tuple()
        coefficient = int("".join(map(str, digits)))
        as_expected = (sign, coefficient, exponent) == (
            int(expected.coefficient < 0), abs(expected.coefficient), -expected.scale
        )  # fmt: skip
        return None if as_expected and result["shown"] == expected.text else f"{value!r}, text {result['shown']}"
    if isinstance(expected, tuple):
        return None if result == list(expected) else str(result)
    return None if type(result) is type(expected) and result == expected else repr(result)
