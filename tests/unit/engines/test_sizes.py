"""Whatever can build something over its limit says `too_large` on every engine, and builds what is within it.

Where that takes long, what is within it is not at the limit but small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.support.nodes import operation_node, small_node
from vesper.compiler import Compiled
from vesper.engines.engine import Limits
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.values.generated.operations import OPERATIONS
from vesper.values.limits import MAX_FUEL
from vesper.values.model import MAX_BYTES, MAX_ENTRIES, MAX_TEXT, Value
from vesper.values.types import JSON, declared_type

Arguments = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Large:
    """Arguments with which the result is over the limit, and some with which it is not; functions, because they are
    large."""

    over: Callable[[], Arguments]
    within: Callable[[], Arguments]
    of: tuple[str, ...] = ()
    literals: dict[str, Value] = field(default_factory=dict)


def numbers(count: int) -> list[int]:
    return [7] * count


def mapped(count: int, start: int = 0) -> dict[int, int]:
    return dict.fromkeys(range(start, start + count), 1)


def members(count: int, start: int = 0) -> frozenset[int]:
    return frozenset(range(start, start + count))


HALF, HALF_TEXT = MAX_ENTRIES // 2, MAX_TEXT // 2
INTEGER = ("integer",)
PAIRS = ("integer", "integer")
LARGE: dict[str, Large] = {
    "array.append": Large(lambda: (numbers(MAX_ENTRIES), 1), lambda: (numbers(9), 1), INTEGER),
    "array.concat": Large(lambda: (numbers(HALF), numbers(HALF + 1)), lambda: (numbers(9), numbers(9)), INTEGER),
    "array.flatten": Large(
        lambda: ([numbers(HALF), numbers(HALF), [1]],), lambda: ([numbers(9), numbers(9)],), INTEGER
    ),
    "array.range": Large(lambda: (0, MAX_ENTRIES + 1, 1), lambda: (0, MAX_ENTRIES, 1)),
    "bytes.concat": Large(lambda: (b"x" * MAX_BYTES, b"x"), lambda: (b"x" * (MAX_BYTES - 1), b"x")),
    "bytes.hex": Large(lambda: (b"x" * (HALF_TEXT + 1),), lambda: (b"x" * HALF_TEXT,)),
    "bytes.base64": Large(lambda: (b"x" * (MAX_TEXT // 4 * 3 + 1),), lambda: (b"x" * (MAX_TEXT // 4 * 3),)),
    "bytes.utf8": Large(lambda: ("é" * (MAX_BYTES // 2 + 1),), lambda: ("é" * (MAX_BYTES // 2),)),
    "json.from_value": Large(
        lambda: (b"x" * (MAX_TEXT // 4 * 3 + 1),), lambda: (b"x" * (MAX_TEXT // 4 * 3),), ("bytes",)
    ),
    "json.parse": Large(lambda: ("[" + "1," * MAX_ENTRIES + "1]",), lambda: ("[" + "1," * 99 + "1]",)),
    "json.text": Large(lambda: ("é" * (MAX_TEXT - 1),), lambda: ("é" * (MAX_TEXT - 2),)),
    "map.put": Large(lambda: (mapped(MAX_ENTRIES), -1, 1), lambda: (mapped(9), 0, 1), PAIRS),
    "map.merge": Large(lambda: (mapped(HALF), mapped(HALF + 1, HALF)), lambda: (mapped(9), mapped(9, 9)), PAIRS),
    "regex.find_all": Large(lambda: ("x" * (MAX_ENTRIES + 1),), lambda: ("x" * 99,), literals={"pattern": "x"}),
    "regex.replace": Large(
        lambda: ("x" * 1_001, "y" * 10_000), lambda: ("x" * 1_000, "y" * 10_000), literals={"pattern": "x"}
    ),
    "regex.split": Large(lambda: ("x" * MAX_ENTRIES,), lambda: ("x" * 99,), literals={"pattern": "x"}),
    "set.union": Large(lambda: (members(HALF), members(HALF + 1, HALF)), lambda: (members(9), members(9, 9)), INTEGER),
    "set.put": Large(lambda: (members(MAX_ENTRIES), -1), lambda: (members(MAX_ENTRIES), 0), INTEGER),
    "text.concat": Large(lambda: ("é" * MAX_TEXT, "x"), lambda: ("é" * (MAX_TEXT - 1), "x")),
    "text.split": Large(lambda: ("," * MAX_ENTRIES, ","), lambda: ("," * (MAX_ENTRIES - 1), ",")),
    "text.words": Large(lambda: ("x " * (MAX_ENTRIES + 1),), lambda: ("x " * 999,)),
    "text.join": Large(lambda: (["x" * HALF_TEXT] * 2, "y"), lambda: (["x" * HALF_TEXT] * 2, "")),
    "text.lower": Large(lambda: ("İ" * (HALF_TEXT + 1),), lambda: ("İ" * 999,)),
    "text.upper": Large(lambda: ("ß" * (HALF_TEXT + 1),), lambda: ("ß" * 999,)),
    "text.replace": Large(lambda: ("x" * 1_001, "x", "y" * 10_000), lambda: ("x" * 1_000, "x", "y" * 10_000)),
    "text.repeat": Large(lambda: ("xy", HALF_TEXT + 1), lambda: ("xy", HALF_TEXT)),
    "text.normalize": Large(lambda: ("\ufdfa" * (MAX_TEXT // 18 + 1), "nfkd"), lambda: ("\ufdfa" * 999, "nfkd")),
    "text.pad_start": Large(lambda: ("x", MAX_TEXT + 1, "-"), lambda: ("x", MAX_TEXT, "-")),
    "text.pad_end": Large(lambda: ("x", MAX_TEXT + 1, "-"), lambda: ("x", MAX_TEXT, "-")),
    "text.code_points": Large(lambda: ("x" * (MAX_ENTRIES + 1),), lambda: ("x" * MAX_ENTRIES,)),
    "text.percent_encode": Large(lambda: (" " * (MAX_TEXT // 3 + 1),), lambda: (" " * 999,)),
}


def node_of(op: str, large: Large) -> Compiled:
    bindings = dict(zip((name for name, _ in OPERATIONS[op].type_params), large.of, strict=True))
    arguments = []
    for name, pattern in OPERATIONS[op].params:
        for parameter, type_ in bindings.items():
            pattern = pattern.replace(f"<{parameter}", f"<{type_}").replace(f", {parameter}>", f", {type_}>")
            pattern = type_ if pattern == parameter else pattern
            pattern = pattern.replace(f"<{parameter}>", f"<{type_}>")
        arguments.append((declared_type(pattern), large.literals.get(name)))
    return operation_node(op, [declared_type(each) for each in large.of], arguments)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("op", LARGE)
def test_over_the_limit_and_within_it(op: str, engine: str) -> None:
    large = LARGE[op]
    program = ENGINES[engine].load(node_of(op, large))
    names = [name for name, _ in OPERATIONS[op].params if name not in large.literals]
    over = program.call(dict(zip(names, large.over(), strict=True)))
    assert isinstance(over, Failed)
    assert over.code == "too_large"
    within = program.call(dict(zip(names, large.within(), strict=True)), None, Limits(fuel=MAX_FUEL))
    assert isinstance(within, Returned)


def test_every_operation_that_can_be_too_large_is_here() -> None:
    declared = {op for op, spec in OPERATIONS.items() if "too_large" in spec.raises and spec.has_kernel}
    assert declared == set(LARGE)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rounds, kind", [(60, "limit_hit"), (3, "returned"), (200, "limit_hit")])
def test_a_json_that_was_doubled_again_and_again(rounds: int, kind: str, engine: str) -> None:
    """Its parts are shared, and each round counts them again: the limit on memory ends it before its text is made."""
    node = small_node(
        "start: json\nrounds: integer",
        "- step: doubled\n  operation: loop\n  while: n < rounds\n  max: 1000\n  state: {n: 0, j: start}\n"
        "  next: {n: n + 1, j: 'to_json([j, j])'}\n"
        "- {step: result, operation: compute, value: length(text(doubled.j))}\n"
        "- {operation: return, success: [result]}",
        outputs="result: integer",
    )
    assert JSON in [each.type for each in node.node.inputs]
    outcome = ENGINES[engine].load(node).call({"start": 1, "rounds": rounds})
    assert (str(outcome.code) if isinstance(outcome, Failed) else outcome.kind) == kind
