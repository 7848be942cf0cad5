"""The text of an imported node reads back as the document that it was written from."""

from __future__ import annotations

import random

import pytest

from vesper.importers import writer
from vesper.importers.writer import (
    CommentedValue,
    InlineValue,
    QuotedText,
    WriterFault,
    node_name,
    string_literal,
    write_node,
)

AWKWARD = [
    "- x", "-1", "*", "&a", "null", "a\nb", "é", "'x' + \"y\"", "😀", "> 3", "%a", "!x", "@x", "`", "x]", "{a}", "-",
    "?", "? a", "\u2028", ":x", "x:", "#", "a #b", "a: b", "", " a", "a ", "---", "...", "<<", "=", "\\n", "\x00",
    "\u202e", "a,b", "| a", "'", '"', "''", "~", "a:", "\ufeff",
]  # fmt: skip


def test_awkward_scalars_survive_in_every_position() -> None:
    for text in AWKWARD:
        write_node({"a": text, "b": [text, InlineValue([text, {"k": text}])], "c": QuotedText(text)})


def test_random_documents_read_back() -> None:
    draw = random.Random(7)
    for _ in range(200):
        write_node({"k": _document(draw, 4)})


def _document(draw: random.Random, depth: int) -> object:
    kind = draw.randrange(6 if depth else 2)
    if kind < 2:
        return " ".join(draw.choice([*AWKWARD, "word", "IF a THEN b"]) for _ in range(draw.choice((1, 3, 40))))
    if kind == 2:
        return [_document(draw, depth - 1) for _ in range(draw.randrange(4))]
    if kind == 3:
        return {f"k{at}": _document(draw, depth - 1) for at in range(draw.randrange(4))}
    return (InlineValue if kind == 4 else lambda value: CommentedValue(value, ("above\n",), "beside #"))(
        _document(draw, depth - 1)
    )


def test_long_expressions_are_folded_and_comments_stay() -> None:
    text = write_node({"flow": [CommentedValue({"value": "a + " * 60 + "a"}, ("From `X`",))]}, ("Imported",))
    assert text.startswith("# Imported\n\nflow:\n  # From `X`\n  - value: >-\n")
    assert max(map(len, text.splitlines())) <= writer.LINE_LENGTH


def test_a_text_with_another_meaning_is_never_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_scalar", lambda value, **_: str(value))
    with pytest.raises(WriterFault):
        write_node({"a": "b: c"})


def test_names_and_literals() -> None:
    assert [node_name(each) for each in ("Applicant Data", "PMTRate", "1x", "é", "input")] == [
        "applicant_data", "pmt_rate", "n_1x", "unnamed", "input_value",
    ]  # fmt: skip
    assert node_name("a", {"a", "a_2"}) == "a_3"
    assert string_literal("it's") == '"it\'s"'
    assert string_literal("a'\"\n") == "'a' + \"'\" + '\"' + from_code_point(10)"
