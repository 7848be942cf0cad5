"""Waves that the checker finds for `parallel: auto`."""

from __future__ import annotations

import pytest

from tests.support.nodes import compiled_text
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements

_NODE = """\
node_id: waves_v1
type: event_handler
intent: Make requests
inputs:
  event_id: string
outputs:
  success:
    total: integer
  error:
    error_code: enum[missing]
    message: string
{parallel}flow:
{steps}  - operation: raise
    when: event_id == ''
    error: {{error_code: missing, message: "no event"}}
  - return: {{total: 1}}
security:
  capabilities_required: [{capabilities}]
"""
_STEPS = {
    "read": '  - {{step: {name}, operation: cache, cache: {on}, action: get, key: "{key}", returns: string}}\n',
    "put": '  - {{step: {name}, operation: cache, cache: {on}, action: put, key: "{key}", value: event_id, ttl: 9s}}\n',
    "write": '  - {{step: {name}, operation: database_write, table: items, data: {{owner: "{key}"}}}}\n',
    "compute": "  - {{step: {name}, value: \"{key} + '!'\"}}\n",
    "sleep": "  - {{step: {name}, operation: sleep, duration: 90m}}\n",
    "end": "  - {{operation: raise, when: \"{key} == ''\", error: {{error_code: missing, message: none}}}}\n",
    "leaving": (
        '  - {{step: {name}, operation: cache, cache: {on}, action: get, key: "{key}", returns: string,'
        " on_error: {{any: {{return_error: {{error_code: missing, message: none}}}}}}}}\n"
    ),
    "skippable": (
        "  - {{step: {name}, when: \"{key} != ''\", operation: cache, cache: {on}, action: get, key: event_id,"
        " returns: string}}\n"
    ),
}
_NEEDS = {
    "cache: prices, action: get": "cache.read.prices",
    "cache: rates, action: get": "cache.read.rates",
    "cache: prices, action: put": "cache.write.prices",
    "cache: rates, action: put": "cache.write.rates",
    "database_write": "database.write.items",
    "sleep": "clock.sleep.system",
}


def _text(steps: list[str], parallel: str = "parallel: auto\n") -> str:
    """Return a node with steps such as `read a rates b`: kind, name, cache, and the step whose value is the key."""
    lines = []
    for step in steps:
        kind, name, *rest = step.split()
        on = rest[0] if rest else "prices"
        key = (
            f"({rest[1]} ?? '')" if len(rest) == 2 else " + ".join(f"({each} ?? '')" for each in rest[1:]) or "event_id"
        )
        lines.append(_STEPS[kind].format(name=name, on=on, key=key))
    text = "".join(lines)
    capabilities = ", ".join(sorted(need for part, need in _NEEDS.items() if part in text))
    return _NODE.format(parallel=parallel, steps=text, capabilities=capabilities)


def _name(statement: ir.Statement) -> str:
    assert isinstance(statement, ir.Step | ir.Branch | ir.Loop | ir.Request | ir.CallNode)
    return statement.name.lstrip("_")


def _waves(steps: list[str]) -> list[list[str]]:
    """Return the steps of each statement; strands are joined by `|`."""
    found = []
    for statement in compiled_text(_text(steps)).node.body[:-2]:
        if isinstance(statement, ir.Parallel):
            found.append(["".join(map(_name, member)) for member in statement.members])
        else:
            found.append([_name(statement)])
    return found


@pytest.mark.parametrize(
    "steps, waves",
    [
        (["read a", "read b", "read c rates"], [["a", "b", "c"]]),
        (["read a", "read b prices a"], [["a"], ["b"]]),
        (["read a", "read b", "read c prices a", "read d prices b"], [["ac", "bd"]]),
        (["read a", "read b", "read c prices a b"], [["a", "b"], ["c"]]),
        (["read a", "read b", "read c prices a b", "read d"], [["a", "b"], ["c", "d"]]),
        (["read a", "compute x prices a", "read b"], [["ax", "b"]]),
        (["compute x", "read a", "read b"], [["x"], ["a", "b"]]),
        (["read a", "compute x", "read b"], [["ax", "b"]]),
        (["read a", "write w", "read b"], [["a"], ["w", "b"]]),
        (["read a", "read b", "write w", "write v"], [["a", "b"], ["w"], ["v"]]),
        (["put w rates", "read b rates", "read c"], [["w"], ["b", "c"]]),
        (["put w rates", "read b", "read c"], [["w", "b", "c"]]),
        (["read a", "sleep s", "read b", "read c"], [["a"], ["s"], ["b", "c"]]),
        (["read a", "leaving b", "read c"], [["a"], ["b"], ["c"]]),
        (["read a", "skippable b", "read c"], [["a", "b", "c"]]),
        (["read a", "skippable b prices a", "read c"], [["ab", "c"]]),
    ],
)
def test_waves(steps: list[str], waves: list[list[str]]) -> None:
    assert _waves(steps) == waves


def test_an_end_of_the_node_ends_the_wave() -> None:
    body = compiled_text(_text(["read a", "read b", "end x prices a", "read c", "read d"])).node.body
    assert [type(each).__name__ for each in body] == ["Parallel", "Branch", "Parallel", "Branch", "Return"]


def test_a_node_without_independent_requests_keeps_its_hash() -> None:
    steps = ["read a", "read b prices a", "write w prices b"]
    assert compiled_text(_text(steps)).semantic_hash == compiled_text(_text(steps, parallel="")).semantic_hash


def test_a_wave_has_at_most_64_strands() -> None:
    body = compiled_text(_text([f"read r{number}" for number in range(70)])).node.body
    assert [len(each.members) for each in body if isinstance(each, ir.Parallel)] == [64, 6]


def test_writes_keep_their_order_and_wait_for_every_earlier_step() -> None:
    steps = [f"write w{number}" if number in (5, 12, 22) else f"read r{number}" for number in range(23)]
    body = compiled_text(_text(steps)).node.body
    waves = [list(all_statements((each,))) for each in body]
    names = [[each.name for each in wave if isinstance(each, ir.Request)] for wave in waves]
    done: set[str] = set()
    for wave in names:
        for name in wave:
            if name.startswith("w"):
                assert wave[0] == name
                assert {each.split()[1] for each in steps[: int(name[1:])]} == done
        done |= set(wave)
    assert len(done) == 23
