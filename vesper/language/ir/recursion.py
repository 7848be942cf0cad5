"""Recursive functions of a node: their groups, which are called, and the depth of calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vesper.language.ir import nodes as ir

MAX_DEPTH = 1_000
"""Maximum `max_depth` of a function."""
MAX_FRAMES = 2_000
"""Maximum of all calls that can be active at once, each counted once more for every `for` around the next call."""


def called_functions(root: ir.Expression) -> set[str]:
    """Return the functions that an expression calls directly."""
    return {each.function for each in ir.walk(root) if isinstance(each, ir.Apply)}


def reachable_functions(node: ir.Node) -> tuple[ir.Function, ...]:
    """Return the functions that an execution can call, in declared order."""
    own = {id(each.value) for each in node.functions}
    calls = {each.name: called_functions(each.value) for each in node.functions}
    roots = (called_functions(root) for root in node.roots() if id(root) not in own)
    found = _closure(set().union(*roots), calls)
    return tuple(each for each in node.functions if each.name in found)


def groups_of(functions: Sequence[ir.Function]) -> dict[str, int]:
    """Return a group number for each function. Functions that call each other are in one group."""
    calls = {each.name: called_functions(each.value) for each in functions}
    reached = {name: _closure(called, calls) for name, called in calls.items()}
    groups: dict[str, int] = {}
    for number, name in enumerate(calls):
        together = [other for other in reached[name] if name in reached[other]]
        for each in (name, *together):
            groups.setdefault(each, number)
    return groups


def count_frames(functions: Sequence[ir.Function]) -> int:
    """Return the maximum number of active frames. A frame is a call, or a `for` around one."""
    groups = groups_of(functions)
    deepest: dict[int, int] = {}
    for each in functions:
        frames = each.max_depth * (1 + _loops_around_calls(each.value))
        group = groups[each.name]
        deepest[group] = max(deepest.get(group, 0), frames)
    return sum(deepest.values())


def _loops_around_calls(root: ir.Expression) -> int:
    """Return the maximum number of `for` around one call in an expression."""
    found = 0
    waiting = [(root, 0)]
    while waiting:
        expression, loops = waiting.pop()
        if isinstance(expression, ir.Apply):
            found = max(found, loops)
        inside = loops + isinstance(expression, ir.For)
        waiting += [(child, inside) for child in ir.children(expression)]
    return found


def _closure(first: Iterable[str], calls: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(first)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += calls[name]
    return found
