"""Roots, exponentials, logarithms and powers of random decimals: both engines against an oracle of more digits.

    python -m tests.proofs.numbers.campaign [--count N] [--seed N]

`sqrt`, `exp`, `ln` and `log10` must have the text of Python's `decimal` at 34 digits, which rounds them correctly;
`pow` that of 60 digits, or more where those leave a doubt, rounded once. Ends with 1 where any text differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal

from tests.support.nodes import expression_node
from vesper.engines.engine import Engine, Program
from vesper.engines.outcome import Failed, Returned
from vesper.values.types import DECIMAL, ArrayOf, Record

FUNCTIONS = ("sqrt", "exp", "ln", "log10")
OVERFLOW = "decimal_overflow"
_BATCH = 500


def oracle(digits: int) -> Context:
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=-(10**7), Emax=10**7, traps=[])


def plain(number: Decimal) -> str:
    """Return the text of a result of 34 digits, or the failure of one over the limits."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if number and (number.adjusted() >= 1000 or -exponent > 1000):
        return OVERFLOW
    return f"{number:f}"


def expected_function(name: str, argument: Decimal) -> str:
    return plain(getattr(oracle(34), name)(argument))


def expected_power(base: Decimal, exponent: Decimal) -> str:
    """Return the power from 60 digits and more, rounded once. The draw makes no exact powers."""
    digits = 60
    while True:
        context = oracle(digits)
        power = context.exp(context.multiply(exponent, context.ln(base)))
        error = power.scaleb(8 - digits, context)
        ends = {plain(oracle(34).plus(end)) for end in (context.subtract(power, error), context.add(power, error))}
        if len(ends) == 1:
            return ends.pop()
        digits *= 2


def draw(chance: random.Random, name: str) -> Decimal:
    """Return an argument: most are short, some long, some close to 1 or to a tie."""
    digits = chance.choice((1, 2, 3, 5, 9, 17, 34, 35, 60))
    coefficient = chance.randrange(1, 10**digits)
    kind = chance.random()
    if name == "exp":
        magnitude = chance.randint(-40, 3)
        value = Decimal(coefficient).scaleb(magnitude - digits)
        return value.copy_negate() if chance.random() < 0.5 else value
    if kind < 0.15:  # close to 1, where a logarithm loses its leading digits
        return Decimal(1) + Decimal(coefficient).scaleb(-digits - chance.randint(1, 40), oracle(200))
    if kind < 0.3 and name == "sqrt":  # a square, or close to one
        square = oracle(200).multiply(Decimal(coefficient), Decimal(coefficient))
        return square.scaleb(-chance.randint(0, 30), oracle(200))
    return Decimal(coefficient).scaleb(-chance.randint(0, 60), oracle(200))


def draw_power(chance: random.Random) -> tuple[Decimal, Decimal]:
    base = draw(chance, "ln")
    digits = chance.choice((1, 2, 3, 9, 17))
    exponent = Decimal(chance.randrange(1, 10**digits) * 10 + chance.choice((1, 3, 7, 9))).scaleb(
        -chance.randint(digits, digits + 6) - 1
    )
    return base, exponent.copy_negate() if chance.random() < 0.3 else exponent


def has_text(program: Program, rows: list[dict[str, Decimal]]) -> list[str]:
    """Return the text of each result, or the code of its failure. One that fails is called by itself."""
    outcome = program.call({"cases": rows})
    if isinstance(outcome, Returned):
        texts = outcome.value["result"]
        assert isinstance(texts, list)
        return [str(text) for text in texts]
    if len(rows) == 1:
        return [str(getattr(outcome.code, "value", outcome.code)) if isinstance(outcome, Failed) else str(outcome)]
    half = len(rows) // 2
    return has_text(program, rows[:half]) + has_text(program, rows[half:])


def run(engines: Mapping[str, Engine], count: int, seed: int, report: Callable[[str], None] = print) -> int:
    """Return the number of texts that differ."""
    record = ArrayOf(Record((("a", DECIMAL), ("b", DECIMAL))))
    wrong = 0
    for name in (*FUNCTIONS, "pow"):
        started = time.perf_counter()
        chance = random.Random(f"{seed} {name}")
        rows: list[dict[str, Decimal]] = []
        wanted: list[str] = []
        while len(rows) < count:
            if name == "pow":
                base, exponent = draw_power(chance)
                if expected_is_exact(base, exponent):
                    continue
                rows.append({"a": base, "b": exponent})
                wanted.append(expected_power(base, exponent))
            else:
                value = draw(chance, name)
                rows.append({"a": value, "b": Decimal(0)})
                wanted.append(expected_function(name, value))
        call = "pow(x.a, x.b)" if name == "pow" else f"{name}(x.a)"
        compiled = expression_node(f"[text({call}) FOR x IN cases]", {"cases": record})
        different = 0
        for label, engine in engines.items():
            program = engine.load(compiled)
            for start in range(0, len(rows), _BATCH):
                part, texts = rows[start : start + _BATCH], wanted[start : start + _BATCH]
                for row, want, got in zip(part, texts, has_text(program, part), strict=True):
                    if want != got:
                        different += 1
                        if different <= 5:
                            report(f"{name} {row}: {label} has {got}, not {want}")
        wrong += different
        seconds = time.perf_counter() - started
        report(f"{name:<6}{len(rows):>8,} arguments on {', '.join(engines)}: {different} differ, {seconds:.1f} s")
    return wrong


def expected_is_exact(base: Decimal, exponent: Decimal) -> bool:
    """Return whether a power may be exact or whole-numbered, which examples cover and the oracle does not."""
    return base == 1 or exponent == exponent.to_integral_value() or len(base.normalize().as_tuple().digits) == 1


def main() -> int:
    from vesper.engines.direct_engine import DirectEngine
    from vesper.engines.python_engine import PythonEngine

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = run({"python": PythonEngine(), "interp": DirectEngine()}, options.count, options.seed)
    print("identical" if not wrong else f"{wrong} texts differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
