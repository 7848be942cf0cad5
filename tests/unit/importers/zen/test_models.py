"""Models of zen: files that are none, and the text of nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vesper.importers.zen.importer import import_model
from vesper.importers.zen.model import ModelError, read_model

INPUT = {"id": "in", "type": "inputNode", "name": "request"}


def model(content: dict[str, Any], kind: str, *inputs: dict[str, Any], **more: Any) -> str:
    """Return a model with one node behind its input."""
    nodes = [INPUT, {"id": "n", "type": kind, "name": "node", "content": content}]
    tests = [{"input": each, "output": {}} for each in inputs]
    return json.dumps({"nodes": nodes, "edges": [{"sourceId": "in", "targetId": "n"}], "tests": tests, **more})


def expression(value: str, *inputs: dict[str, Any]) -> str:
    return import_model(model({"expressions": [{"key": "x", "value": value}]}, "expressionNode", *inputs), "m").text


@pytest.mark.parametrize(
    "text, message",
    [
        ("[", "no JSON"),
        ("[]", "not an object"),
        ('{"nodes": 1}', "not a list"),
        ('{"nodes": []}', "0 input nodes"),
        (json.dumps({"nodes": [INPUT, INPUT]}), "two nodes have the id"),
        (json.dumps({"nodes": [INPUT], "edges": [{"sourceId": "in", "targetId": "x"}]}), "no node has the id `x`"),
        ('{"nodes": [{"type": 5}]}', "is not a string"),
        (model({"hitPolicy": "unique"}, "decisionTableNode"), "neither `first` nor `collect`"),
        (model({"executionMode": "twice"}, "expressionNode"), "neither `single` nor `loop`"),
        ("[" * 100_000, "no JSON"),
        ('{"nodes": NaN}', "no number of JSON"),
    ],
)
def test_a_file_that_is_no_model_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_model(text)


def test_a_cycle_is_refused() -> None:
    nodes = [INPUT, *({"id": each, "type": "outputNode", "name": each} for each in "ab")]
    edges = [{"sourceId": a, "targetId": b} for a, b in (("in", "a"), ("a", "b"), ("b", "a"))]
    with pytest.raises(ModelError, match="cycle"):
        import_model(json.dumps({"nodes": nodes, "edges": edges}), "m")


@pytest.mark.parametrize(
    "value, inputs, text",
    [
        ("a + b", [{"a": 1, "b": 2}], "value: normalize(a + b)"),
        ("firstName + '!'", [{"firstName": "x"}], "value: first_name + '!'"),
        ("a ?? 0", [{"a": 1}], "value: a ?? 0"),
        ("a.b.c > 1", [{"a": {"b": {"c": 1}}}, {"a": {}}], "require(IF a.b IS NULL THEN null ELSE a.b.c) > 1"),
        ("map(xs, # * 2)", [{"xs": [1]}], '"[item * 2 FOR item IN xs]"'),
        ("some(xs as x, x.n == 1)", [{"xs": [{"n": 1}]}], "EXISTS x IN xs SATISFIES x.n == 1"),
        ("round(a, 2)", [{"a": 1}], "normalize(round(a, 2, half_up))"),
        ("a in ['x', 'y']", [{"a": "x"}], "a IN ['x', 'y']"),
        ("date('2024-01-01')", [], "epoch_seconds(zen_date('2024-01-01'))"),
        ("d(t).add(2, 'days')", [{"t": "2024-01-01"}], "zen_date(t) + days(2)"),
        ("rand(5)", [], "not translated: expression `x`: `rand` draws a random number"),
        ("a + ", [{"a": 1}], "not translated: expression `x`: found the end"),
    ],
)
def test_an_expression_becomes_a_step(value: str, inputs: list[dict[str, Any]], text: str) -> None:
    assert text in expression(value, *inputs)


def test_cells_become_cells_and_other_conditions_expressions() -> None:
    content = {
        "hitPolicy": "first",
        "inputs": [{"id": "a", "name": "Age", "field": "age"}, {"id": "b", "name": "Any", "field": ""}],
        "outputs": [{"id": "o", "name": "Out", "field": "out.level"}],
        "rules": [
            {"_description": "the young", "a": "[0..18)", "b": "", "o": "'low'"},
            {"a": "> 2 and < 5, 7", "b": "age > limit", "o": "'mid'"},
            {"a": "", "b": "", "o": "'high'"},
        ],
    }
    text = import_model(model(content, "decisionTableNode", {"age": 3, "limit": 1}), "m").text
    assert '{in: {age: "[0..18)"}, then: "\'low\'", annotation: the young}' in text
    assert '{in: {age: "(2..5), 7"}, when: age > limit, then: "\'mid\'"}' in text
    assert "{otherwise: \"'high'\"}" in text


def test_a_model_inside_a_model_is_read_by_its_key() -> None:
    inner = model({"expressions": [{"key": "y", "value": "x * 2"}], "passThrough": True}, "expressionNode", {"x": 1})
    outer = model({"key": "inner.json"}, "decisionNode", {"x": 1})
    assert "value: normalize(x * 2)" in import_model(outer, "m", lambda _: inner).text
    assert "is not beside this one" in import_model(outer, "m").text
    endless = import_model(outer, "m", lambda _: outer)
    assert any("contain each other" in str(each) for each in endless.problems)
