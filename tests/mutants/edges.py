"""Inputs that a planted fault once survived: the smallest each that tells it from the right engine.

They are written as expressions or as nodes, and asked of both engines like every other case (`test_corpus.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.support.nodes import expression_node
from vesper.compiler import Compiled
from vesper.spec.types import declared_type

NODES = Path(__file__).parent / "nodes"
"""Nodes whose cases belong to the corpus."""

EXPRESSIONS: dict[str, tuple[dict[str, str], str, list[dict[str, object]]]] = {
    # The types of the inputs, the expression over them, and the inputs.
}


def edge_questions() -> Iterator[tuple[str, Compiled, dict[str, object]]]:
    for name, (types, text, rows) in EXPRESSIONS.items():
        node = expression_node(text, {each: declared_type(type_) for each, type_ in types.items()})
        for number, given in enumerate(rows):
            yield f"{name} {number}", node, given


JSON_TAKEN = [
    '{"price": 1.50, "pieces": -0}',
    '{"price": "1E+2", "ratio": 1e-7, "flag": true, "name": "\\u00e9\\u0001\\n\\ud83d\\ude00"}',
    '{"price": 1, "ratio": "Infinity", "moment": "2026-11-15T02:21:30.000500+02:00", "span": "-P1DT2H"}',
    '{"price": 1, "ratio": 1e400}',
    '{"price": 1, "ratio": -0.0, "blob": "aGk=", "day": "2024-02-29", "color": "a b"}',
    '{"price": 1, "words": ["b", "a"], "numbers": [3, 1, 3]}',
    '{"price": 1, "rates": {"b": 1.10, "a": "2"}, "stairs": [[2, "x"], [-1, "y"]]}',
    '{"price": 1, "anything": {"b": [1.50, null, {"z": true, "a": 1e2}], "a": "x"}}',
    '{"zeta": 1, "alpha": 2, "middle": 3, "pieces": "x"}',
    '{"price": 1, "numbers": [1, "x", 2, true], "rates": {"b": "x", "a": []}, "words": [1, "a"]}',
    '{"price": 1, "stairs": [["x", "y"], [1, 2]], "color": "blue", "day": "2023-02-29"}',
    '{"price": "1e1000", "pieces": 9223372036854775808, "span": "P9999999D"}',
]
"""Texts that Python's own reader reads alike."""

JSON_REFUSED: list[tuple[bytes, str, str]] = [
    (b"", "malformed", ""),
    (b'{"price": 1, "price": 2}', "malformed", ""),
    (b'{"price": NaN}', "malformed", ""),
    (b'{"price": "\\ud800"}', "malformed", ""),
    (b'{"price": 1, "name": "\\ud800\\u0041"}', "malformed", ""),
    (b"[]", "wrong_type", ""),
    (b'{"price": 1, "pieces": 1.0}', "wrong_type", "pieces"),
    (b'{"price": 1, "pieces": 1e3}', "wrong_type", "pieces"),
    (b'{"price": 1, "anything": ' + b"[" * 128 + b"]" * 128 + b"}", "malformed", ""),
    (b'{"price": 1, "stairs": [[1, "a"], [1, "b"]]}', "duplicate", "stairs"),
    (b'{"price": 1, "words": ["a", "a"]}', "duplicate", "words"),
]
"""Texts that only JSON itself refuses, or that Python's reader takes for something else."""
