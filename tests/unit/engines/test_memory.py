"""What the values of an execution take, byte by byte: the same on every engine."""

from __future__ import annotations

import pytest

from tests.support.nodes import small_node
from vesper.compiler import Compiled
from vesper.engines.engine import Limits, Program, run_observed
from vesper.engines.outcome import LimitHit, Outcome
from vesper.engines.registry import ENGINES

XS = {"xs": [3, 1, 2]}

EXPRESSIONS: dict[str, tuple[str, str]] = {
    # The type of the result, and the expression over xs = [3, 1, 2].
    "an array": ("array<integer>", "[x * 2 FOR x IN xs]"),
    "texts": ("array<string>", "[text(x) + 'abc' FOR x IN xs]"),
    "items that exist": ("array<integer>", "[x FOR x IN xs]"),
    "an array of arrays": ("array<array<integer>>", "[[y * x FOR y IN xs] FOR x IN xs]"),
    "some items": ("array<integer>", "[x FOR x IN xs WHERE x > 1]"),
    "a set": ("set<integer>", "{x FOR x IN xs}"),
    "a map": ("map<integer, string>", "{x: text(x) FOR x IN xs}"),
    "a map that is written out": ("map<string, integer>", "{'a': 1, 'b': 2}"),
    "sorted by numbers": ("array<integer>", "sort_by(0 - x FOR x IN xs)"),
    "sorted by texts": ("array<integer>", "sort_by(text(x) FOR x IN xs WHERE x > 0)"),
    "groups": ("map<boolean, array<integer>>", "group_by(x > 1 FOR x IN xs)"),
    "counts": ("map<string, integer>", "count_by(text(x) FOR x IN xs)"),
    "an index": ("map<string, integer>", "index_by(text(x) FOR x IN xs)"),
    "distinct by texts": ("array<integer>", "distinct_by(text(x) FOR x IN xs)"),
    "taken while": ("array<integer>", "take_while(x > 2 FOR x IN xs)"),
    "dropped while": ("array<integer>", "drop_while(x > 2 FOR x IN xs)"),
    "an average of all": ("decimal", "avg(x FOR x IN xs)"),
    "an average": ("decimal", "avg(x * 2 FOR x IN xs)"),
    "what a round gives back": ("integer", "sum(length(repeat('a', 5000 * x)) FOR x IN xs)"),
    "long texts": ("array<string>", "[repeat('a', 5000 * x) FOR x IN xs]"),
    "what a condition takes": ("array<integer>", "[x FOR x IN xs WHERE length(repeat('a', 5000 * x)) > 6000]"),
    "a state that is a text": ("string", "fold(acc + repeat('b', 3000) FOR x IN xs, acc = '')"),
    "a state that is an array": ("array<string>", "fold(append(acc, text(x)) FOR x IN xs, acc = ['a'])"),
    "any, until one is": ("boolean", "EXISTS x IN xs SATISFIES length(repeat('a', 5000 * x)) > 6000"),
    "a text that is cut": ("array<string>", "split(repeat('a,', 4000), ',')"),
    "arrays of new texts": ("array<array<string>>", "[[text(x)] + ['b'] FOR x IN xs]"),
    "names": ("integer", "length([LET t = text(x) IN [t, t] FOR x IN xs])"),
    "one of two": ("array<string>", "[IF x > 1 THEN text(x) ELSE 'long enough' FOR x IN xs]"),
    "all, to the end": ("boolean", "FORALL x IN xs SATISFIES length(repeat('a', 5000 * x)) > 1"),
    "a json that is read": ("json", "parse_json('[' + repeat('1,', 99) + '1]')"),
}
PRICES = {
    # Some of them, computed by hand from docs/spec/limits.md.
    "an array": 3 * (24 + 32),
    "items that exist": 3 * 24,
    "texts": 3 * (24 + 56 + 4),
    "a set": 3 * 64,
    "a map": 3 * (104 + 56 + 1),
    "an array of arrays": 2 * (24 + 56 + 3 * (24 + 32)) + 3 * (24 + 32) + (24 + 56 + 3 * (24 + 32)),
    "what a round gives back": 56 + 15_000,
}

LOOP = """- step: made
  operation: loop
  over: x IN xs
  state:
    seen: {type: "array<string>", value: "[]"}
  steps:
    - {step: long, operation: compute, value: "repeat('a', 5000 * x)"}
  collect: "[long, text(x)]"
  next: {seen: "append(seen, long)"}
- {step: result, operation: compute, value: length(made.collected) + length(made.seen)}
- {operation: return, success: [result]}"""


def computed(name: str) -> Compiled:
    type_, expression = EXPRESSIONS[name]
    step = f'- {{step: result, operation: compute, type: "{type_}", value: "{expression}"}}'
    return small_node("xs: array<integer>", f"{step}\n- {{operation: return, success: [result]}}", f"result: '{type_}'")


def outcomes(program: Program, memory: int) -> list[Outcome]:
    """Called and observed: both must count."""
    limits = Limits(memory=memory)
    return [program.call(XS, None, limits), run_observed(program, XS, None, limits).outcome]


def least_memory(program: Program) -> int:
    """Return the least limit that the execution does not hit."""
    low, high = 0, 1 << 30
    while low < high:
        middle = (low + high) // 2
        found = outcomes(program, middle)
        assert len({each.kind for each in found}) == 1, found
        if found[0] == LimitHit("memory"):
            low = middle + 1
        else:
            high = middle
    return low


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_engine_counts_the_same_bytes(name: str) -> None:
    node = computed(name)
    found = {engine: least_memory(program.load(node)) for engine, program in ENGINES.items()}
    assert len(set(found.values())) == 1, found
    if name in PRICES:
        assert found["python"] == PRICES[name]


def test_loops_with_state_count_the_same_bytes() -> None:
    node = small_node("xs: array<integer>", LOOP, "result: integer")
    found = {engine: least_memory(program.load(node)) for engine, program in ENGINES.items()}
    assert len(set(found.values())) == 1, found
    assert found["python"] > 30_000


@pytest.mark.parametrize("engine", ENGINES)
def test_realistic_programs_stay_below_the_default_limit(engine: str) -> None:
    joined = small_node(
        "xs: array<integer>",
        "- step: rows\n  operation: compute\n"
        '  value: "[[x, x * 2, x + 1] FOR x IN range(0, 100000)]"\n'
        "- {step: result, operation: compute, value: length(rows)}\n"
        "- {operation: return, success: [result]}",
        "result: integer",
    )
    assert ENGINES[engine].load(joined).call(XS).kind == "returned"
