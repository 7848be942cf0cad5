"""Inputs that meet preconditions, and inputs that reach a branch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nodes import compiled, small_node, worked_nodes
from vesper.compiler import Compiled
from vesper.engines.outcome import ContractBroken, Failed, Returned
from vesper.engines.path import guards
from vesper.engines.registry import ENGINES
from vesper.language.ir.nodes import Arm, Block, Branch, For, If, Step, walk
from vesper.language.ir.statements import own_blocks
from vesper.values.model import same
from vesper.values.types import SetOf, Type
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.node_tests import NodeTester
from vesper.verify.solve.goals import branch_goals
from vesper.verify.solve.search import InputSolver

_LINES = "types:\n  Line: {fields: {sku: string, qty: integer, price: decimal}}\n"


def _share(node: Compiled, draws: int = 120, seed: int = 3) -> float:
    """Return the share of drawn inputs that a node accepts."""
    program = ENGINES["python"].load(node)
    generator = InputGenerator(node.node, seed)
    return sum(isinstance(program.call(generator.draw()), Returned) for _ in range(draws)) / draws


def _node(inputs: str, clauses: list[str]) -> Compiled:
    contracts = "contracts:\n  preconditions:\n" + "".join(f'    - "{each}"\n' for each in clauses)
    flow = "- {operation: return, success: {result: true}}"
    return small_node(inputs, flow, "result: boolean", contracts + (_LINES if "Line" in inputs else ""))


@pytest.mark.parametrize(
    "inputs,clauses",
    [
        ("a: integer\nb: integer\nc: integer", ["0 < a AND a < b AND b < c"]),
        ("a: integer\nb: integer", ["a + b == 100", "a - b >= 20"]),
        ("a: integer\nb: integer\nc: integer", ["2 * a < b", "a + b <= c", "c <= 50", "a > 3"]),
        ("a: decimal\nb: decimal", ["scale(a) <= 2", "a * 3 == b", "b >= 1000"]),
        ("a: string\nb: string", ["a == b", "length(a) == 7", "starts_with(a, 'ord')"]),
        ("s: string", ["matches(s, '^[0-9]{4}-[0-9]{2}-[0-9]{2}$')", "slice(s, 0, 2) == '20'"]),
        ("s: string", ["matches(s, '^[A-Z]{2}[0-9]{2}[A-Z0-9]{10,30}$')", "length(s) == 22", "starts_with(s, 'DE')"]),
        ("s: string", ["length(split(s, '-')) == 3", "split(s, '-')[1] == 'x'", "parse_integer(split(s, '-')[2]) > 7"]),
        ("k: 'enum[a, b, c]'\nn: integer", ["k IN [a, b]", "k == a => n > 1000", "k == b => n < -1000"]),
        ("o: optional<integer>\np: optional<integer>", ["o IS NOT NULL", "p IS NULL OR p > 500", "(o ?? 0) == 77"]),
        ("xs: array<integer>", ["SUM(x FOR x IN xs) == 1000", "FORALL x IN xs SATISFIES x >= -500"]),
        ("xs: array<integer>", ["FORALL i IN range(1, length(xs)) SATISFIES xs[i] > xs[i - 1]", "length(xs) == 5"]),
        ("ls: array<Line>\nt: decimal", ["SUM(l.qty * l.price FOR l IN ls) == t", "t > 100", "length(ls) >= 2"]),
        ("ls: array<Line>", ["EXISTS l IN ls SATISFIES l.sku == 'gift' AND l.qty == 3"]),
        ("a: date\nb: date", ["a < b AND days_between(a, b) <= 30", "year(a) == 2031", "weekday(b) == monday"]),
        ("a: timestamp\nb: timestamp\nd: duration", ["b - a == d", "d > minutes(5)", "d < hours(2)"]),
        ("m: 'map<string, integer>'", ["'vat' IN m", "m['vat'] == 19"]),
        ("m: 'set<string>'\ns: string", ["s IN m", "length(m) == 3", "m CONTAINS 'a'"]),
        ("n: integer", ["mod(n, 7) == 3", "n > 1000000"]),
        ("a: integer\nb: boolean", ["IF b THEN a == 4711 ELSE a == -4711"]),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_most_drawn_inputs_meet_the_preconditions(inputs: str, clauses: list[str]) -> None:
    assert _share(_node(inputs, clauses)) >= 0.5


def test_a_long_run_keeps_meeting_preconditions_that_tie_inputs() -> None:
    """Changing one input of a known solution breaks them, until the others follow."""
    node = _node("a: timestamp\nb: timestamp\nd: duration", ["b - a == d", "d > minutes(5)", "d < hours(2)"])
    assert _share(node, draws=1_500) >= 0.5


def test_a_set_that_cannot_have_the_wanted_length_costs_few_draws() -> None:
    """A type has no more members than it has, however many a clause wants."""
    node = _node("m: 'set<boolean>'", ["length(m) == 1500"]).node
    drawn: list[object] = []

    def draw(_name: str, _type: Type) -> object:
        drawn.append(None)
        return {True} if isinstance(_type, SetOf) else bool(len(drawn) % 2)

    repaired = InputSolver(node, random.Random(1), draw).repair({"m": {True}}, max_rounds=1)
    assert not repaired.is_met
    assert len(drawn) <= 200


def test_some_drawn_inputs_break_the_preconditions() -> None:
    assert _share(_node("a: integer\nb: integer", ["a + b == 100"])) <= 0.95


def test_changing_drawn_inputs_does_not_change_later_ones() -> None:
    node = _node("xs: array<integer>\nls: array<Line>", ["length(xs) == 5", "SUM(l.qty FOR l IN ls) == 1000"]).node
    kept, changed = InputGenerator(node, 3), InputGenerator(node, 3)
    for _ in range(400):
        inputs = changed.draw()
        assert same(inputs, kept.draw())
        for value in inputs.values():
            if isinstance(value, list):
                for item in value:
                    if isinstance(item, dict):
                        item.clear()
                value.append("changed")


def test_equal_seeds_draw_equal_inputs() -> None:
    node = _node("a: integer\nxs: array<integer>\ns: string", ["SUM(xs) == a", "a > 100", "matches(s, '^[a-z]{9}$')"])
    first, second = (InputGenerator(node.node, 11) for _ in range(2))
    assert [first.draw() for _ in range(100)] == [second.draw() for _ in range(100)]


FUNCTIONS = [path for path in worked_nodes() if compiled(path).node.type == "function"]
"""Nodes whose clauses cannot read the time."""


@pytest.mark.parametrize("path", FUNCTIONS, ids=lambda path: path.stem)
def test_the_solver_and_the_engine_accept_the_same_inputs(path: Path) -> None:
    node = compiled(path)
    program = ENGINES["python"].load(node)
    generator = InputGenerator(node.node, 5, examples=[case.inputs for case in node.cases])
    solver = InputSolver(node.node, generator._random, generator._value)
    clauses = (*node.node.constraints, *node.node.preconditions)
    before = {part.index for each in clauses for part in walk(each.holds)}
    for _ in range(40):
        inputs = generator.draw()
        values = solver.read(inputs)
        outcome = program.call(inputs)
        is_broken = isinstance(outcome, ContractBroken) and outcome.phase in ("constraint", "precondition")
        is_refused = is_broken or (isinstance(outcome, Failed) and (outcome.at is None or outcome.at in before))
        assert (values is not None and solver.meets(values)) is not is_refused, inputs


PARSER = """
- operation: compute
  compute:
    parts: split(text, ':')
    kind: parts[0]
- step: result
  operation: decision_table
  rows:
    - {when: "kind == 'order' AND length(parts) == 3 AND matches(parts[1], '^[0-9]{4,6}$')", then: "'number'"}
    - {when: "kind == 'date' AND matches(text, ':[0-9]{4}-[01][0-9]-[0-3][0-9]$')", then: "'date'"}
    - {when: "starts_with(text, 'DE') AND length(text) == 22", then: "'account'"}
    - {when: "upper(text) == 'HELP'", then: "'help'"}
    - {otherwise: "'unknown'"}
- {operation: return, success: {result: result}}
"""


def test_texts_reach_the_branches_of_a_parser() -> None:
    node = small_node("text: string", PARSER.strip(), "result: string")
    report = NodeTester(node, {"python": ENGINES["python"]}).run_properties(100, seed=0)
    assert len(report.branches) == 8


def test_numbers_reach_a_branch_behind_arithmetic() -> None:
    flow = """
- operation: compute
  compute:
    net: price * qty
    off: "IF qty > 10 THEN net / 10 ELSE 0"
    result: "IF net - off == 12345.60 THEN 1 ELSE 2"
- {operation: return, success: {result: result}}
"""
    node = small_node("price: decimal\nqty: integer", flow.strip(), "result: integer")
    report = NodeTester(node, {"python": ENGINES["python"]}).run_properties(100, seed=0)
    assert len(report.branches) == 4


@pytest.mark.parametrize("path", worked_nodes(), ids=lambda path: path.stem)
def test_every_condition_of_a_step_or_an_arm_has_a_goal(path: Path) -> None:
    node = compiled(path).node
    goals = {index for index, _ in branch_goals(node)}
    expected = {each.when.index for each in _arms(node.body)}
    for statement in node.body:
        if isinstance(statement, Step):
            folds = [part for part in walk(statement.value) if isinstance(part, For) and part.kind == "fold"]
            in_folds = {part.index for fold in folds for part in walk(fold.value)}
            found = {part.condition.index for part in walk(statement.value) if isinstance(part, If)}
            expected |= found - in_folds
    assert expected <= goals <= guards(node)


def _arms(block: Block) -> Iterator[Arm]:
    """Yield the arms outside of handlers."""
    for statement in block:
        for inner in own_blocks(statement):
            yield from _arms(inner)
        if isinstance(statement, Branch):
            yield from statement.arms
