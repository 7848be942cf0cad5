"""The engines agree on code that each implements itself: patterns, letters, times, workdays."""

from __future__ import annotations

import random
from datetime import date

from tests.support.nodes import operation_node
from vesper.engines.compare import same_outcome
from vesper.engines.outcome import EngineFault, Returned
from vesper.engines.registry import PAIR
from vesper.values.model import Value
from vesper.values.types import DATE, INTEGER, STRING, Enum, SetOf, Type
from vesper.verify.inputs.pattern_texts import draw_text
from vesper.verify.programs.patterns import draw_pattern

LETTERS = "aAbkK\u212asS\u017fß\u1e9eéÉe\u0301İıσςΣ٣0159 _-.,\n\t\r\x0b\x1c\x85\u2028😀\U0010ffff"
WEEKDAYS = Enum(("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))
LAST_DAY = 3_652_059


class Both:
    """One operation on both engines; arguments that must be literals are fixed."""

    def __init__(self, op: str, *types: Type, **literals: Value) -> None:
        typed: list[tuple[Type, Value]] = [(type_, None) for type_ in types]
        compiled = operation_node(op, (), [*typed, *((STRING, value) for value in literals.values())])
        self.op = f"{op}{literals or ''}"
        self._names = [each.name for each in compiled.node.inputs]
        self._programs = [engine.load(compiled) for engine in PAIR.values()]

    def check(self, *arguments: Value) -> bool:
        """Assert that the engines agree; return whether there is a value."""
        inputs = dict(zip(self._names, arguments, strict=True))
        left, right = (program.call(inputs) for program in self._programs)
        assert not isinstance(left, EngineFault), left
        assert same_outcome(left, right), f"{self.op} of {arguments!r}: {left} and {right}"
        return isinstance(left, Returned)


def test_patterns() -> None:
    draw = random.Random(20261115)
    for _ in range(120):
        pattern = draw_pattern(draw)
        operations = [
            Both(f"regex.{verb}", STRING, pattern=pattern)
            for verb in ("matches", "find", "find_all", "groups", "split")
        ]
        for _ in range(12):
            text = "".join(draw.choice(LETTERS) for _ in range(draw.randrange(6)))
            text = text + draw_text(pattern, draw) + text if draw.random() < 0.6 else text
            for operation in operations:
                operation.check(text)


def test_every_letter() -> None:
    for op in ("text.lower", "text.upper"):
        both = Both(op, STRING)
        for first in (*range(0, 0xD800, 0x400), *range(0xE000, 0x110000, 0x400)):
            assert both.check("".join(map(chr, range(first, first + 0x400))))


def test_code_points_in_their_categories_and_foldings() -> None:
    for pattern in ("\\p{L}", "\\p{Lu}", "\\p{M}", "\\p{N}", "\\p{C}", "\\p{Cn}", "(?i)[k-s]", "(?i)[^é-σ]", "(?i)ǆ"):
        both = Both("regex.find_all", STRING, pattern=pattern)
        for first in (*range(0, 0x3000, 0x400), *range(0xA000, 0xA800, 0x400), *range(0x1E800, 0x1F000, 0x400)):
            assert both.check("".join(map(chr, range(first, first + 0x400))))


def test_texts_of_times() -> None:
    draw = random.Random(2)
    known = {
        "date.parse": ["2024-02-29", "0001-01-01", "9999-12-31", "2023-02-29"],
        "timestamp.parse": ["2024-02-29T12:30:00.5+02:00", "0001-01-01T00:00:00Z", "9999-12-31 23:59:59.999999-00:01"],
        "duration.parse": ["P1DT2H3M4.5S", "1d2h3m4.000005s6ms7us", "-P3652059D", "3652059d1us", "PT0.000001S"],
    }
    for op, texts in known.items():
        both = Both(op, STRING)
        read = 0
        for _ in range(1500):
            text = draw.choice(texts)
            for _ in range(draw.randrange(4)):
                at = draw.randint(0, len(text))
                text = text[:at] + draw.choice("0123456789-+:.TtZzPDHMSdhmsu ٣") + text[at + draw.randrange(3) :]
            read += both.check(text)
        assert read > 100


def test_business_days() -> None:
    draw = random.Random(3)
    add = Both("date.add_business_days", DATE, INTEGER, SetOf(DATE), SetOf(WEEKDAYS))
    between = Both("date.business_days_between", DATE, DATE, SetOf(DATE), SetOf(WEEKDAYS))
    for _ in range(600):
        start = draw.choice((draw.randint(1, LAST_DAY), draw.randint(1, 60), draw.randint(LAST_DAY - 60, LAST_DAY)))
        around = [start + draw.randint(-40, 40) for _ in range(draw.randrange(20))]
        holidays = frozenset(date.fromordinal(each) for each in around if 1 <= each <= LAST_DAY)
        weekend = frozenset(draw.sample(WEEKDAYS.members, draw.choice((0, 1, 2, 2, 3, 6, 7))))
        count = draw.choice((draw.randint(-30, 30), draw.randint(-(10**6), 10**6), 2**63 - 1, -(2**63)))
        add.check(date.fromordinal(start), count, holidays, weekend)
        end = min(max(start + draw.randint(-400, 400), 1), LAST_DAY)
        between.check(date.fromordinal(start), date.fromordinal(end), holidays, weekend)


def test_months_and_years() -> None:
    draw = random.Random(4)
    counted = [Both(f"date.add_{unit}", DATE, INTEGER) for unit in ("days", "months", "years")]
    between = [Both(f"date.{unit}_between", DATE, DATE) for unit in ("days", "months", "years")]
    for _ in range(1000):
        one, other = (date.fromordinal(draw.randint(1, LAST_DAY)) for _ in range(2))
        for operation in counted:
            operation.check(one, draw.choice((draw.randint(-500, 500), draw.randint(-(10**5), 10**5), -(2**63))))
        for operation in between:
            operation.check(one, other)
