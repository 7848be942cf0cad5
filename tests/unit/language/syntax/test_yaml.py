"""YAML of nodes: the texts of issue reports, bounds of time, and the fix for lines that are indented too little."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.support.waiting import processor_seconds
from vesper.compiler.pipeline import compile_source
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.fix import apply_edits
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.repairs import with_fix
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.values.json_value import Json


def plain(tree: Tree | None) -> object:
    """Return a tree as Python values of its texts."""
    if isinstance(tree, Mapping):
        return {key.text: plain(value) for key, value in tree.entries}
    if isinstance(tree, Sequence):
        return [plain(item) for item in tree.items]
    assert isinstance(tree, Scalar)
    return tree.text


def read(text: str) -> object:
    bag = DiagnosticBag(SourceFile("test.vsp", text))
    tree = read_yaml(bag)
    assert tree is not None, [each.headline for each in bag.sorted()]
    return plain(tree)


def constant(type_: str, value: str) -> object:
    """Return the value of a constant that is written so."""
    text = (
        "node_id: c_v1\ntype: function\nintent: Hold a constant\ninputs: {n: integer}\n"
        f"outputs: {{success: {{r: '{type_}'}}}}\nconstants:\n  c:\n    type: {type_}\n    value: {value}\n"
        "flow:\n  - operation: return\n    success: {r: c}\n"
    )
    compiled, bag = compile_source(SourceFile("c_v1.vsp", text))
    assert compiled is not None, [each.headline for each in bag.sorted()]
    value_ = compiled.node.constants[0].value
    return value_.content if isinstance(value_, Json) else value_


@pytest.mark.parametrize(
    "text, value",
    [
        ('a: "x\x85y"', {"a": "x\x85y"}),
        ("a: x\u2028y\u2029z", {"a": "x\u2028y\u2029z"}),
        ("{?foo: bar}", {"?foo": "bar"}),
        ("[?x, -y, :z]", ["?x", "-y", ":z"]),
        ('{"foo"\n: bar}', {"foo": "bar"}),
        ("a: 1\n\t\nb: 2", {"a": "1", "b": "2"}),
        ("a: 1\n \t # note\nb: 2", {"a": "1", "b": "2"}),
        ("a:\r\n  b: 'x\r\n\r\n    y'\r\n", {"a": {"b": "x\ny"}}),
        ('a: "\\U0001F600\\x41\\N\\/"', {"a": "\U0001f600A\x85/"}),
        ("a: http://x.y/z#f", {"a": "http://x.y/z#f"}),
    ],
)
def test_text_is_read_as_yaml_1_2_says(text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    "type_, text, value",
    [
        ("json", "", None),
        ("json", "~", None),
        ("json", "{a: , b: ~, c: null, d: 'null', e: \"\"}", {"a": None, "b": None, "c": None, "d": "null", "e": ""}),
        ("json", "{a: '17', b: \"true\", c: no, d: 2 }", {"a": "17", "b": "true", "c": "no", "d": 2}),
        ("json", "usd", "usd"),
        ("json", "'{\"a\": 1}'", {"a": 1}),
        ("json", '"null"', None),
        ("optional<string>", "null", None),
        ("optional<string>", "~", None),
        ("optional<string>", "'null'", "null"),
        ("optional<string>", '"~"', "~"),
        ("optional<string>", "''", ""),
        ("string", "null", "null"),
    ],
)
def test_quoted_null_is_text(type_: str, text: str, value: object) -> None:
    assert constant(type_, text) == value


@pytest.mark.parametrize(
    "text",
    [
        "a: {\n  b: [1,\n2],\n}\nc: 'one\n\ntwo'\n",
        "- [\n1\n]\n",
        "a:\n  b: [\n  1\n  ]\n",
        'a: "x\ny"\n',
    ],
)
def test_fix_indents_lines_inside_quotes_and_brackets(text: str) -> None:
    bag = DiagnosticBag(SourceFile("test.vsp", text))
    assert read_yaml(bag) is None
    assert {each.code for each in bag.sorted()} == {Code.INVALID_YAML}
    fix = with_fix(bag.source, bag.sorted()[0]).fix
    assert fix is not None
    repaired = apply_edits(text, fix.edits)
    assert [line.strip() for line in repaired.split("\n")] == [line.strip() for line in text.split("\n")]
    read(repaired)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        "a: " * 100_000,
        "- " * 200_000,
        "[" * 200_000,
        "a: [" + "x, " * 200_000,
        'a: "' + "\\n" * 200_000,
        "a: '" + "\n" * 200_000,
        "a: |\n" + " \n" * 200_000,
        "a: >\n" + " x\n" * 200_000,
        "a\n" * 200_000,
        "a:\n" + " #\n" * 200_000,
        "a: x" + " " * 400_000 + "b",
        "a: x" + "#" * 400_000,
        "a: " + ":x" * 200_000,
        "? " * 200_000,
        "&a " * 200_000,
        "!a" * 200_000,
        "%A" + " b" * 200_000,
        "---\n" * 100_000,
        "{a\n" + "\n" * 200_000,
        "\t\n" * 200_000,
        "a: 'x'" + "\n" * 200_000 + "\tb",
    ],
    ids=lambda text: repr(text[:8]),
)
def test_time_is_bounded_by_the_size_of_a_text(text: str) -> None:
    bag = DiagnosticBag(SourceFile("test.vsp", text))
    with processor_seconds(3), suppress(CheckingStopped):
        read_yaml(bag)
