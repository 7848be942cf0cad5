"""Shapes of flows that some of the first drawn programs must have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from vesper.verify.programs.nodes import draw_program
from vesper.verify.programs.terms import Term
from vesper.verify.programs.text import Draft, DrawnFlow, DrawnTable, Tree

PROGRAMS = 300
_RANGE = re.compile(r"range\((-?\d+), (-?\d+)(?:, (-?\d+))?\)")
_COMPARISON = re.compile(r"(-?[\d.]+) (<=|<|>|>=) \(?[a-z]")


@cache
def drafts() -> tuple[Draft, ...]:
    return tuple(draw_program(seed) for seed in range(PROGRAMS))


def _mappings(tree: Tree) -> Iterator[dict[str, Tree]]:
    if isinstance(tree, dict):
        yield tree
        for each in tree.values():
            yield from _mappings(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from _mappings(each)


@cache
def parts() -> tuple[dict[str, Tree], ...]:
    """Return all mappings in the steps of the programs."""
    steps = (step for draft in drafts() for step in draft.steps if isinstance(step, DrawnFlow))
    return tuple(found for step in steps for found in _mappings(dict(step.fields)))


@cache
def loops() -> tuple[dict[str, Tree], ...]:
    return tuple(part for part in parts() if part.get("operation") == "loop")


def _fixed_items(loop: dict[str, Tree]) -> range | None:
    found = _RANGE.search(str(loop.get("over", "")))
    return None if found is None else range(int(found[1]), int(found[2]), int(found[3] or 1))


def _states(loop: dict[str, Tree]) -> dict[str, Tree]:
    found = loop.get("state", {})
    assert isinstance(found, dict)
    return found


def _depth(loop: dict[str, Tree]) -> int:
    inner = [each for key, value in loop.items() if key == "steps" for each in _mappings(value)]
    return 1 + max((_depth(each) for each in inner if each.get("operation") == "loop"), default=0)


def _leaves(block: Tree | None) -> bool:
    """Return whether a block ends with a step that leaves the node without a condition."""
    if not isinstance(block, list) or not block or not isinstance(last := block[-1], dict) or "when" in last:
        return False
    if last["operation"] == "conditional":
        return _leaves(last.get("then")) and _leaves(last.get("else"))
    return last["operation"] in ("return", "raise")


def test_loops_combine_their_fields() -> None:
    fields = ("over", "while", "max", "stop_when", "collect", "steps", "next", "on_error")
    for first in fields:
        for second in fields:
            assert any(first in loop and second in loop for loop in loops()), (first, second)
    assert {len(_states(loop)) for loop in loops()} >= {0, 1, 2, 3}
    assert any("WHERE" in str(loop.get("over", "")) and "while" in loop for loop in loops())


def test_ranges_are_fixed_computed_empty_and_descending() -> None:
    fixed = [items for loop in loops() if (items := _fixed_items(loop)) is not None]
    assert any(len(items) == 0 for items in fixed)
    assert any(items.step < 0 and len(items) > 1 for items in fixed)
    assert any(items.start < 0 for items in fixed)
    assert any("range(" in str(loop.get("over", "")) and "mod(" in str(loop["over"]) for loop in loops())


def test_max_is_below_at_and_above_the_number_of_items() -> None:
    found = {
        min(2, max(-2, int(str(loop["max"])) - len(items)))
        for loop in loops()
        if "max" in loop and "WHERE" not in str(loop.get("over")) and (items := _fixed_items(loop)) is not None
    }
    assert found == {-2, -1, 0, 1, 2}


def test_a_filtered_range_has_more_items_than_max() -> None:
    assert any(
        "WHERE" in str(loop["over"]) and "max" in loop and len(items) > int(str(loop["max"]))
        for loop in loops()
        if (items := _fixed_items(loop)) is not None
    )


def test_long_loops_carry_numbers() -> None:
    counted = re.compile(r"part_\d+_n < (\d+)|(\d+) > part_\d+_n")
    long = [loop for loop in loops() if len(_fixed_items(loop) or ()) >= 66]
    found = ((loop, counted.fullmatch(str(loop.get("while", "")))) for loop in loops())
    long += [loop for loop, match in found if match is not None and int(match[1] or match[2]) >= 66]
    texts = [str(value) for loop in long for value in _states(loop).values()]
    assert len(long) >= 3
    assert any("." in text for text in texts)
    assert any("." not in text for text in texts)


def test_sums_reach_the_edge_of_a_register() -> None:
    firsts = [str(first).lstrip("-").replace(".", "") for loop in loops() for first in _states(loop).values()]
    digits = {len(first) for first in firsts if first.isdigit()}
    assert digits & {18, 19}, "64 bits"
    assert digits & {38, 39}, "128 bits"


def test_loops_are_nested_and_left_early() -> None:
    assert max(map(_depth, loops())) >= 3
    bodies = [step for loop in loops() for step in _steps(loop)]
    assert {str(step["operation"]) for step in bodies if "when" in step} >= {"return", "raise"}


def _steps(loop: dict[str, Tree]) -> list[dict[str, Tree]]:
    steps = loop.get("steps", [])
    return [each for each in steps if isinstance(each, dict)] if isinstance(steps, list) else []


def test_handlers_of_loops_give_values() -> None:
    handlers = [handler for loop in loops() if isinstance(handler := loop.get("on_error"), dict)]
    assert any("loop_limit" in code and "value" in each for handler in handlers for code, each in _items(handler))


def _items(handlers: dict[str, Tree]) -> list[tuple[str, dict[str, Tree]]]:
    return [(code, each) for code, each in handlers.items() if isinstance(each, dict)]


def test_both_sides_of_a_conditional_leave_before_postconditions() -> None:
    assert any(_leaves(part.get("then")) and _leaves(part.get("else")) for part in parts())
    assert any(not draft.returned and draft.postconditions for draft in drafts())


def test_an_expression_of_the_flow_occurs_in_contracts() -> None:
    def repeated(draft: Draft) -> bool:
        flow = draft.text().partition("\nflow:")[2]
        before, after = (
            {str(term) for clause in clauses for term in _computed(clause)}
            for clauses in (draft.preconditions, draft.postconditions)
        )
        return any(text in flow for text in before & after)

    # One program of about 200 is such; the first one ends the search.
    assert any(repeated(draw_program(seed)) for seed in range(3_000))


def _computed(term: Term) -> Iterator[Term]:
    """Yield the sums, differences and products in a term."""
    if any(part in (" + ", " - ", " * ") for part in term.parts):
        yield term
    for part in term.terms():
        yield from _computed(part)


def test_constants_stand_on_both_sides_of_comparisons() -> None:
    words = " ".join(str(part.get("condition", part.get("when", ""))) for part in parts())
    assert {found[2] for found in _COMPARISON.finditer(words)} == {"<", "<=", ">", ">="}
    assert "NOT " in words


def test_tables_have_up_to_twelve_rows_and_flows_many_steps() -> None:
    rows = {len(step.rows) for draft in drafts() for step in draft.steps if isinstance(step, DrawnTable)}
    assert rows >= {1, 2, 3, 5, 8, 12}
    assert any(len(draft.steps) >= 30 for draft in drafts())


def test_half_of_the_programs_are_small() -> None:
    assert sum(len(draft.steps) <= 4 for draft in drafts()) >= PROGRAMS / 2


def test_programs_differ_in_the_kinds_of_their_steps() -> None:
    def kinds(draft: Draft) -> frozenset[str]:
        steps = (step for step in draft.steps if isinstance(step, DrawnFlow))
        return frozenset(
            str(part["operation"]) for step in steps for part in _mappings(dict(step.fields)) if "operation" in part
        )

    assert len({kinds(draft) for draft in drafts()}) >= PROGRAMS / 5


def test_some_programs_call_recursive_functions() -> None:
    found = [each for draft in drafts() for each in draft.functions if each.max_depth is not None]
    assert len(found) >= 20
    assert sum(f"{each.name}(" in str(each.value) for each in found) >= 15
