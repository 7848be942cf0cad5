"""Relations on a node: rewritings, mappings, reports, and the parts that make them."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal

import pytest

from vesper.cli.verify.relations import relation_failure_text, relations_json, relations_line, relations_table
from vesper.compiler import Compiled, compile_source
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.verify.differential.forms import COMPARED
from vesper.verify.relations.campaign import verify_program_relations
from vesper.verify.relations.catalog import ALL_RELATIONS
from vesper.verify.relations.checking import verify_relations
from vesper.verify.relations.input_relations import split_number
from vesper.verify.relations.layouts import block_text, flow_text
from vesper.verify.relations.parentheses import parenthesise
from vesper.verify.relations.rewritings import Relation, Rewriting
from vesper.verify.relations.subject import Subject

_NODE = """
node_id: related_v1
type: function
intent: Give every relation something to rewrite
types:
  Pair: {fields: {left: integer, right: integer}}
inputs:
  amount: decimal
  count: integer
  pair: Pair
  items: array<integer>
  is_open: boolean
outputs:
  success: {fee: decimal, kind: "enum[low, high]", total: integer, small: integer}
  error: {error_code: "enum[closed]", message: string}
constants:
  limit: {type: integer, value: 12}
functions:
  cap: {params: {given: integer}, returns: integer, value: "min(given, 100)"}
contracts:
  preconditions: ["FORALL each IN items SATISFIES each < 1000"]
flow:
  - {operation: raise, when: NOT is_open, error: {error_code: closed, message: "closed for {count}"}}
  - step: fee
    operation: decision_table
    rows:
      - {when: (amount * 2) <= 10 AND count > 0, then: amount * 0.10}
      - {otherwise: "2.50 + 0.25"}
  - step: first_half
    operation: compute
    value: IF count < limit THEN 1 ELSE 2
  - step: small
    operation: conditional
    condition: count > 5
    then: cap(pair.left)
    else: cap(pair.right)
  - step: sums
    operation: loop
    over: item IN items
    state: {total: 0}
    steps:
      - {step: part, operation: compute, value: cap(item)}
    next: {total: "max(total, part)"}
  - step: kind
    operation: compute
    value: "LET x = first_half IN IF x == 1 THEN low ELSE high"
  - operation: return
    success: {fee: fee, kind: kind, total: sums.total, small: small}
testing:
  test_cases:
    - name: open
      inputs: {amount: 5.00, count: 6, pair: {left: 1, right: 2}, items: [3, 4, 5], is_open: true}
      expect: {total: 5}
    - name: closed
      inputs: {amount: 5.00, count: 3, pair: {left: 1, right: 2}, items: [], is_open: false}
      expect: {error: {error_code: closed}}
"""


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    found, bag = compile_source(SourceFile("related_v1.vsp", _NODE), judge_contracts=False)
    assert found is not None, bag.sorted()
    return found


def test_every_relation_applies_and_holds(compiled: Compiled) -> None:
    report = verify_relations(compiled, seed=2, reference_share=0.5)
    assert report.failures == []
    assert set(report.checked) == {each.name for each in ALL_RELATIONS}
    assert report.left_out == {}
    assert report.executions > 200


def test_a_seed_gives_the_same_rewritings(compiled: Compiled) -> None:
    def texts() -> list[str]:
        subject = Subject(compiled)
        made = [each.rewrite(subject, random.Random(each.name)) for each in ALL_RELATIONS]
        return ["" if each is None else each.text for each in made]

    assert texts() == texts()


def _rewrite_text(old: str, new: str) -> Relation:
    return Relation(
        "edited", "nothing changes", lambda subject, _: Rewriting(subject.source.text.replace(old, new)), True
    )


def test_a_different_outcome_is_shrunk_and_rendered(compiled: Compiled) -> None:
    report = verify_relations(compiled, seed=0, relations=[_rewrite_text("{total: 0}", "{total: 5000}")])
    (failure,) = report.failures
    assert (failure.relation, failure.kind, failure.engine) == ("edited", "outcome", "interp")
    assert failure.inputs["items"] == []
    shown = relation_failure_text(failure)
    assert "relation `edited` does not hold for `related_v1`: the outcome differs" in shown
    assert all(each in shown for each in ("items=[]", "total=0", "total=5000", "state: {total: 5000}"))
    assert "1 failures" in relations_line(report)
    assert "edited" in relations_table(report)
    (found,) = json.loads(json.dumps(relations_json(report)))["failures"]
    assert (found["expected"]["value"]["total"], found["found"]["value"]["total"]) == (0, 5000)


def test_a_refused_rewriting_is_a_failure_only_where_it_must_compile(compiled: Compiled) -> None:
    broken = _rewrite_text("count < limit", "count < missing")
    (failure,) = verify_relations(compiled, relations=[broken]).failures
    assert failure.kind == "refused"
    assert "missing" in relation_failure_text(failure)
    assert "detail" in relations_json(verify_relations(compiled, relations=[broken]))["failures"][0]
    report = verify_relations(compiled, relations=[replace(broken, is_always_valid=False)])
    assert report.passed
    assert report.left_out == {"edited": 1}


def test_a_source_must_compile() -> None:
    with pytest.raises(ValueError, match="VSP"):
        verify_relations(SourceFile("x_v1.vsp", "node_id: x_v1\n"))


def test_relations_hold_for_random_programs() -> None:
    engines = {"interp": COMPARED["interp"]}
    report = verify_program_relations(engines, 10, 3, inputs_each=2)
    assert report.failures == []
    assert report.nodes == 2
    assert len(report.checked) > 20


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a OR b AND c", "(a OR (b AND c))"),
        ("a - b - c * 2", "((a - b) - (c * 2))"),
        ("a => b => c", "(a => (b => c))"),
        ("NOT a == b AND c", "((NOT (a == b)) AND c)"),
        ("a ?? b ?? c + 1", "(a ?? (b ?? (c + 1)))"),
        ("x NOT IN xs OR y IS NOT NULL", "((x NOT IN xs) OR (y IS NOT NULL))"),
        ("LET a = 1 + 2 IN a IN xs", "(LET a = ((1 + 2)) IN (a IN xs))"),
        ("SUM(x * 2 FOR x IN xs WHERE x > 1) + 1", "(SUM((x * 2) FOR x IN xs WHERE (x > 1)) + 1)"),
        ("CAST(j AS map<string, integer>)['a'] + 1", "(CAST(j AS map < string , integer >)['a'] + 1)"),
        ("IF a THEN 1 ELSE 2 + 3", "(IF a THEN 1 ELSE (2 + 3))"),
        ("-a.b * c", "(-a.b * c)"),
    ],
)
def test_parentheses_follow_the_table_of_operators(text: str, expected: str) -> None:
    assert parenthesise(text) == expected


def test_both_styles_read_back_as_the_same_tree(compiled: Compiled) -> None:
    tree = read_yaml(DiagnosticBag(compiled.source))
    assert tree is not None
    for text in (block_text(tree), flow_text(tree)):
        again = read_yaml(DiagnosticBag(SourceFile("again.vsp", text)))
        assert again is not None
        assert _texts(again) == _texts(tree)


def _texts(tree: object) -> object:
    """Return a tree as nested texts, without spans and styles."""
    if hasattr(tree, "entries"):
        return {key.text: _texts(value) for key, value in tree.entries}
    return [_texts(item) for item in tree.items] if hasattr(tree, "items") else getattr(tree, "text", None)


@pytest.mark.parametrize("value", [0, 7, -7, 2**63 - 1, -(2**63), Decimal("0.00"), Decimal("-1.50"), Decimal("1E-30")])
def test_the_parts_of_a_number_have_its_sum_and_places(value: int | Decimal) -> None:
    first, second = split_number(value)
    assert isinstance(first, int | Decimal)
    assert isinstance(second, int | Decimal)
    assert str(first + second) == str(value)
