"""Inputs as JSON text: a mistake in it says what is wrong and where, by line and column."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import vesper
from tests.unit.api.given import basket

LINE = '{"sku": "a", "qty": 1, "price": 1, "tags": []}'
WHOLE = f'{{"lines": [{LINE}], "kind": "retail", "rates": {{}}, "days": []}}'


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> vesper.Node:
    return basket(tmp_path_factory.mktemp("nodes"), "python")


def told(node: vesper.Node, text: str | bytes) -> list[str]:
    error = node(text).error
    assert error is not None
    assert error.code == "bad_input"
    for each in error.problems:
        assert each.message.endswith(f" (line {each.line}, column {each.column})")
    return [str(each).replace("JSON text: ", "") for each in error.problems]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "expected a value, but the text ends here (line 1, column 1)"),
        (" \n ", "expected a value, but the text ends here (line 2, column 2)"),
        ('{"kind": }', "expected a value, found `}` (line 1, column 10)"),
        ('{"kind" "retail"}', 'expected `:` after the name, found `"retail"` (line 1, column 9)'),
        ('{"kind": "retail"', "expected `,` or `}`, but the text ends here (line 1, column 18)"),
        ('{"lines": [1 2]}', "expected `,` or `]`, found `2` (line 1, column 14)"),
        ("{5: 1}", "expected a name in double quotes, found `5` (line 1, column 2)"),
        ('{"kind": "retail",\n}', "a trailing comma before `}` (line 1, column 18)"),
        ('{"lines": [1,]}', "a trailing comma before `]` (line 1, column 13)"),
        ('{\n  "kind": "retail",\n  "kind": 1\n}', 'the name `"kind"` occurs twice in one object (line 3, column 3)'),
        ('{"kind": "retail"} x', "expected the end of the text, found `x` (line 1, column 20)"),
        ('{"kind": "retail"}\n\n{}', "expected the end of the text, found `{` (line 3, column 1)"),
        ("{'kind': 1}", "a string needs double quotes, not single ones (line 1, column 2)"),
        ("{kind: 1}", "`kind` is no JSON; names and strings need double quotes (line 1, column 2)"),
        ('{"kind": True}', "`True` is no JSON; write `true` (line 1, column 10)"),
        ('{"kind": NaN}', '`NaN` is no JSON number; a float that is none is a string, "NaN" (line 1, column 10)'),
        ('{"kind": 01}', "a number with a leading zero (line 1, column 10)"),
        ('{"kind": 1.}', "a number with a point and no digit after it (line 1, column 11)"),
        ('{"kind": +1}', "`+1` is no JSON number (line 1, column 10)"),
        (
            '{"kind": "é\u0000"}',
            "`\\u0000` must be written as an escape inside a string, such as `\\n` (line 1, column 12)",
        ),
        ('{"kind": "a\\x"}', "`\\x` is no escape in a JSON string (line 1, column 12)"),
        ('{"kind": "a\\', "a string begins here that has no end (line 1, column 10)"),
        ('{"kind": "abc', "a string begins here that has no end (line 1, column 10)"),
        ('{"kind": "\\ud800"}', "a string with one half of a surrogate pair, which no text has (line 1, column 10)"),
        ('{"kind": 1, // one\n}', "JSON has no comments (line 1, column 13)"),
        ("\ufeff{}", "a byte order mark, which JSON text must not have (line 1, column 1)"),
        ('{"kind": @}', "`@` does not belong here (line 1, column 10)"),
        (b'{"a":\n "\xc3\xa9\xff"}', "the byte 0xff is not UTF-8, which JSON text is written in (line 2, column 4)"),
        (bytearray(b"{"), "expected a name in double quotes, but the text ends here (line 1, column 2)"),
        ("[" * 300 + "]" * 300, "nested deeper than 256 levels (line 1, column 257)"),
        ("[]", "expected a JSON object with the inputs, got an array (line 1, column 1)"),
        ("\n 5", "expected a JSON object with the inputs, got number 5 (line 2, column 2)"),
    ],
)
def test_a_text_without_inputs(node: vesper.Node, text: str | bytes, message: str) -> None:
    assert told(node, text) == [message]


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('"kind"', '\n"knid"', "kind: missing; expected one of retail, trade (line 1, column 1)"),
        ('"kind"', '\n"knid"', "knid: no such input; did you mean `kind`? (line 2, column 1)"),
        ('"retail"', '"retial"', 'kind: expected one of retail, trade, got string "retial"; did you mean `retail`?'),
        ('"qty": 1,', '"qty": 1e3,', "lines[0].qty: expected integer, got number 1e3 (line 1, column 32)"),
        ('"qty": 1,', '"qty": -0.0,', "lines[0].qty: expected integer, got number -0.0 (line 1, column 32)"),
        ('"price": 1', '"price": 1e4000', "lines[0].price: expected decimal, got number 1e4000, which is out of range"),
        ('"sku": "a"', '"sku": -0', "lines[0].sku: expected string, got number -0 (line 1, column 20)"),
        ('"tags": []', '"tags": ["new", 7]', "lines[0].tags[1]: expected one of new, sale, got number 7"),
        ('"tags": []', '"tags": [], "x": {}', "lines[0].x: no such field; the fields are sku, qty, price, tags, note"),
        ('"rates": {}', '"rates": {"new": true}', 'rates["new"]: expected decimal, got true (line 1, column 96)'),
        ('"days": []', '"days": [["2026-11-15", {}]]', "days[2026-11-15]: expected integer, got an object"),
        (
            '"days": []',
            '"days": [["2026-11-15", 1], ["2026-11-15", 2]]',
            "days: expected map<date, integer>, got an array, in which something occurs twice (line 1, column 100)",
        ),
        ('"days": []', '"days": null', "days: expected map<date, integer>, got null (line 1, column 100)"),
    ],
)
def test_an_input_that_does_not_fit(node: vesper.Node, old: str, new: str, message: str) -> None:
    assert node(WHOLE).ok
    changed = WHOLE.replace(old, new)
    assert changed != WHOLE
    assert any(each.startswith(message) for each in told(node, changed)), told(node, changed)


def test_a_number_past_every_float_is_shown_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "ratio_v1.vsp"
    path.write_text(
        "node_id: ratio_v1\ntype: function\nintent: Take a ratio\ninputs: {ratio: float}\n"
        "outputs: {success: {ratio: float}}\nflow:\n  - {operation: return, success: {ratio: ratio}}\n"
    )
    node = vesper.load(path)
    assert told(node, '{"ratio": 1e400}') == [
        "ratio: expected float, got number 1e400, which is out of range (line 1, column 11)"
    ]
    assert str(node('{"ratio": -0}').unwrap()["ratio"]) == "-0.0"


def test_objects_have_no_line(node: vesper.Node) -> None:
    error = node({"kind": 5}).error
    assert error is not None
    assert {(each.line, each.column) for each in error.problems} == {(None, None)}


@pytest.mark.parametrize("text", ['{"kind": 1,' * 10_000, '{"kind": "' + "a" * 3_000_000, '{"x": [' + "1 ," * 50_000])
def test_a_long_mistake_is_told_in_short(node: vesper.Node, text: str) -> None:
    (message,) = told(node, text)
    assert len(message) < 200


def test_many_problems_take_time_that_grows_with_their_number(node: vesper.Node) -> None:
    def seconds(count: int) -> float:
        text = WHOLE.replace(LINE, ",\n".join([LINE.replace('"qty": 1', '"qty": "x"')] * count))
        begun = time.process_time()
        problems = told(node, text)
        assert len(problems) == count
        assert problems[-1].endswith(f"(line {count}, column {32 if count == 1 else 21})")
        return time.process_time() - begun

    seconds(1)
    few = seconds(300)
    assert seconds(3_000) < 60 * few + 1
