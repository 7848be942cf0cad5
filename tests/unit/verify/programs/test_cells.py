"""Operations with their operand types: each is drawn, in both orders and at its limits."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from math import ceil

from tests.support.cells import reached_cells
from tests.support.nodes import compiled_text, small_node
from vesper.compiler import Compiled
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.language.ir.nodes import Array, Call, Literal, Ref
from vesper.values.generated.operations import IMPLEMENTED
from vesper.values.types import INTEGER, STRING, declared_type
from vesper.verify.programs.arguments import COUNTS, LARGEST, TEXTS, draw_argument
from vesper.verify.programs.cells import (
    CAST,
    CELLS_PER_PROGRAM,
    operand_cells,
    preferred_cells,
    usable_operations,
)
from vesper.verify.programs.nodes import draw_program

_PROGRAMS = 120
_ORDER = ("less", "less_or_equal", "greater", "greater_or_equal")


@cache
def _programs() -> tuple[Compiled, ...]:
    return tuple(compiled_text(draw_program(seed).text()) for seed in range(9000, 9000 + _PROGRAMS))


@cache
def _calls() -> list[Call]:
    return [part for each in _programs() for part in each.node.expressions() if isinstance(part, Call)]


# -- rotation -------------------------------------------------------------------------------------


def test_every_operation_has_a_cell() -> None:
    """Records are declared by a program, so no cell can name one."""
    operations = {row[0].spec.name for row in operand_cells()}
    assert {each.name for each in usable_operations()} - operations == {"record.equal", "record.not_equal"}
    assert CAST in operations


def test_consecutive_programs_prefer_every_cell() -> None:
    rows = operand_cells()
    a_round = ceil(len(rows) / CELLS_PER_PROGRAM)
    for first in (0, 4_000_000):
        once = {cell.spec for number in range(first, first + a_round) for cell in preferred_cells(number)}
        assert once == {row[0].spec for row in rows}, "one round has every operation"
        last = first + a_round * (1 + max(map(len, rows)))
        found = {cell for number in range(first, last) for cell in preferred_cells(number)}
        assert found == {cell for row in rows for cell in row}


def test_most_programs_contain_their_preferred_operations() -> None:
    met = 0
    for seed, program in zip(range(9000, 9000 + _PROGRAMS), _programs(), strict=True):
        operations = {part.op for part in program.node.expressions() if isinstance(part, Call)}
        met += sum(cell.spec.name in operations for cell in preferred_cells(seed))
    assert met >= 0.4 * CELLS_PER_PROGRAM * _PROGRAMS


def test_operations_are_drawn_at_every_position() -> None:
    positions = Counter(position for each in _programs() for _, _, position in reached_cells(each.node))
    wanted = (
        "constraint", "precondition", "postcondition", "invariant", "validation", "condition", "branch value", "loop",
        "loop state", "effect argument", "flow value",
    )  # fmt: skip
    assert {each for each in wanted if not positions[each]} == set(), positions


# -- comparisons ----------------------------------------------------------------------------------


def test_comparisons_have_literals_on_both_sides() -> None:
    compared = [each for each in _calls() if each.op.partition(".")[2] in _ORDER]
    left = sum(isinstance(each.args[0], Literal) and not isinstance(each.args[1], Literal) for each in compared)
    right = sum(isinstance(each.args[1], Literal) and not isinstance(each.args[0], Literal) for each in compared)
    assert min(left, right) >= 15, (left, right)


def test_the_same_values_are_compared_in_several_ways() -> None:
    """One comparison decides another only if both are of the same values."""
    found = 0
    for each in _programs():
        verbs: dict[frozenset[str], set[str]] = {}
        for part in each.node.expressions():
            if (
                isinstance(part, Call)
                and part.op.partition(".")[2] in _ORDER
                and isinstance(part.args[0], Ref | Literal)
            ):
                sides = [str(getattr(side, "name", getattr(side, "value", None))) for side in part.args]
                verbs.setdefault(frozenset(sides), set()).add(f"{sides[0]} {part.op}")
        found += sum(len(ways) > 1 for ways in verbs.values())
    assert found >= 15


def test_a_value_is_an_operand_twice() -> None:
    assert any(
        isinstance(each.args[0], Ref) and each.args[0].name == getattr(each.args[1], "name", None)
        for each in _calls()
        if len(each.args) == 2
    )


def test_membership_is_tested_in_listed_literals() -> None:
    listed = [each for each in _calls() if each.op == "array.is_item" and isinstance(each.args[1], Array)]
    assert any(
        all(isinstance(item, Literal) for item in array.items)
        for each in listed
        if isinstance(array := each.args[1], Array) and array.items
    )


# -- arguments ------------------------------------------------------------------------------------


def test_arguments_belong_to_parameters_of_their_types() -> None:
    known = {
        (f"{spec.name}.{name}", declared_type(text)) for spec in IMPLEMENTED.values() for name, text in spec.params
    }
    assert {(key, INTEGER) for key in COUNTS} - known == set()
    assert {(key, STRING) for key in TEXTS} - known == set()


def test_values_of_the_largest_size_exist_and_larger_ones_fail() -> None:
    """Each call has a count that returns and one that is too large."""
    calls = [(call, counts) for call, counts in LARGEST if "range" not in call]
    for call, counts in calls:
        ends = (
            f'- {{operation: return, success: {{result: "{call.format(count)}"}}}}' for count in (counts[0], counts[-1])
        )
        outcomes = [
            ENGINES["interp"].load(small_node("n: integer", end, "result: integer")).call({"n": 1}) for end in ends
        ]
        assert isinstance(outcomes[0], Returned), call
        assert isinstance(outcomes[1], Failed), call


def test_a_parameter_without_limits_has_no_argument() -> None:
    assert draw_argument(random.Random(1), "integer.add", "left", risk=1.0) is None


def test_arguments_of_a_careful_program_mostly_succeed() -> None:
    source = random.Random(1)
    drawn = Counter(draw_argument(source, "integer.shift_left", "count", risk=0.0) for _ in range(500))
    assert drawn[64] + drawn[-1] <= 50 < drawn[0]
