"""Formatter rules, one at a time, by input and output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nodes import worked_nodes
from tests.support.waiting import processor_seconds
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.format import formatter
from vesper.language.syntax.format.formatter import FormatFault, format_source


def format_text(text: str) -> str:
    bag = DiagnosticBag(SourceFile("test.vsp", text))
    result = format_source(bag)
    assert result is not None, [each.headline for each in bag.sorted()]
    return result


PAIRS = {
    "indentation becomes two": ("a:\n     b:\n        c: 1\n", "a:\n  b:\n    c: 1\n"),
    "items are indented under their key": ("a:\n- b\n-   c\n", "a:\n  - b\n  - c\n"),
    "a mapping in an item": ("-    a: 1\n     b: 2\n", "- a: 1\n  b: 2\n"),
    "a list in a list": ("-   - a\n    - b\n-\n  - c\n", "- - a\n  - b\n-\n  - c\n"),
    "a document that is indented": ("  a: 1\n  b:\n    c: 2\n", "a: 1\n\nb:\n  c: 2\n"),
    "white space at the end": ("a: 1  \nb: \t\n  c: 2 \n\n\n", "a: 1\n\nb:\n  c: 2\n"),
    "no line break at the end": ("a: 1", "a: 1\n"),
    "line ends of Windows": ("a: 1\r\nb: |\r\n  x\r\n", "a: 1\n\nb: |\n  x\n"),
    "one blank line at most": ("\n\na:\n\n\n  b: 1\n\n\n\n  c: 2\n", "a:\n\n  b: 1\n\n  c: 2\n"),
    "sections are set apart, the head is not": (
        "node_id: a_v1\ntype: function\nintent: x\ninputs:\n  a: 1\noutputs: {}\n",
        "node_id: a_v1\ntype: function\nintent: x\n\ninputs:\n  a: 1\n\noutputs: {}\n",
    ),
    "a section takes its comment along": (
        "a:\n  b: 1\n  # below b\n# on c\n# as well\nc: 1\n# apart\n\nd: 1\n",
        "a:\n  b: 1\n  # below b\n\n# on c\n# as well\nc: 1\n# apart\n\nd: 1\n",
    ),
    "comments at the top": ("#!shebang\n#a\n\nb: 1\n", "#!shebang\n# a\n\nb: 1\n"),
    "comments and their space": ("a: 1 #x\n#y\n##z\n#\nb: 1\n", "a: 1  # x\n\n# y\n##z\n#\nb: 1\n"),
    "trailing comments keep a common column": (
        "a:\n  b: 1       # x\n  ccccc: 22  # y\n             # z\n",
        "a:\n  b: 1       # x\n  ccccc: 22  # y\n             # z\n",
    ),
    "trailing comments are pushed together": (
        "a:\n- bbbb: 1 # x\n  c: 2    # y\n          # z\n",
        "a:\n  - bbbb: 1  # x\n    c: 2     # y\n             # z\n",
    ),
    "a comment that is set apart stays in its column": (
        "a:\n    b: 1            # x\n",
        "a:\n  b: 1              # x\n",
    ),
    "comments go with the block they stand in": (
        "a:\n    # on b\n    b:\n        - c\n        # under c\n    # under b\n# at the end\n",
        "a:\n  # on b\n  b:\n    - c\n    # under c\n  # under b\n# at the end\n",
    ),
    "a comment at the margin goes to what follows": ("a:\n  b: 1\n#x\n  c: 2\n", "a:\n  b: 1\n  # x\n  c: 2\n"),
    "comments after a key and after a dash": (
        "a: # x\n    # y\n    - # z\n      b: 1\n",
        "a:  # x\n  # y\n  -  # z\n    b: 1\n",
    ),
    "spaces in flow": ("a: { b : c,d: [ 1 ,2,3 ] , }\n", "a: {b: c, d: [1, 2, 3],}\n"),
    "a key without a value in flow": ("a: {b: ,c: }\n", "a: {b: , c: }\n"),
    "quoted keys in flow": ("a: {\"b\":'c'}\n", "a: {\"b\": 'c'}\n"),
    "a pair in a flow list": ("a: [b :  c,d]\n", "a: [b: c, d]\n"),
    "aligned values stay": ("a:\n  b:   1\n  ccc: 2\n", "a:\n  b:   1\n  ccc: 2\n"),
    "aligned values move to the left": ("a:\n    b:     1\n    ccc:   2\n", "a:\n  b:   1\n  ccc: 2\n"),
    "values in no common column": ("a:\n  b:    1\n  ccc: 2\n  d:  3\n", "a:\n  b: 1\n  ccc: 2\n  d: 3\n"),
    "aligned values beside a longer key": (
        "a:\n  b:  1\n  cc: 2\n  dddddd: 3\n",
        "a:\n  b:  1\n  cc: 2\n  dddddd: 3\n",
    ),
    "an alignment ends at a value of several lines": (
        "a:\n  b:    1\n  cccc: >\n    x\n  dd:   2\n",
        "a:\n  b: 1\n  cccc: >\n    x\n  dd: 2\n",
    ),
    "aligned rows stay": (
        "- {when: a < 1,   then: b}\n- {when: a < 100, then: c}\n- {otherwise: d}\n",
        "- {when: a < 1,   then: b}\n- {when: a < 100, then: c}\n- {otherwise: d}\n",
    ),
    "aligned rows move to the left": (
        "- { when:  a,    then: b }\n- { when:  a11,  then: c }\n",
        "- {when: a,   then: b}\n- {when: a11, then: c}\n",
    ),
    "rows in no common column": (
        "- {when: a,  then: b}\n- {when: a11,   then: c}\n",
        "- {when: a, then: b}\n- {when: a11, then: c}\n",
    ),
    "aligned rows in flow": (
        "a: [\n    {b: 1,   c: 2},\n    {b: 111, c: 2}\n    ]\n",
        "a: [\n  {b: 1,   c: 2},\n  {b: 111, c: 2}\n  ]\n",
    ),
    "aligned fields in a row": (
        "a:\n  b:  {type: string,  min: 1}\n  cc: {type: decimal, min: 1}\n",
        "a:\n  b:  {type: string,  min: 1}\n  cc: {type: decimal, min: 1}\n",
    ),
    "flow over several lines, hanging": (
        "a:\n    b: {\n        c: d, # x\n        # y\n        e: [\n          f]\n        }\n",
        "a:\n  b: {\n    c: d,  # x\n    # y\n    e: [\n      f]\n    }\n",
    ),
    "flow over several lines, aligned": ("a:   [b,\n  c,\n   d\n  ]\n", "a: [b,\n    c,\n    d\n   ]\n"),
    "flow in an item": ("-  {\n a: 1\n }\n", "- {\n    a: 1\n  }\n"),
    "a value on the next line": ("a:\n      b + c\nd:\n   [e]\n", "a:\n  b + c\n\nd:\n  [e]\n"),
    "plain text over several lines": (
        "a: one\n      two\n\n        three # x\nb:  one\n    two\n",
        "a: one\n      two\n\n        three  # x\n\nb: one\n   two\n",
    ),
    "plain text that hangs": ("a:\n    bbbb: one\n     two\n      three\n", "a:\n  bbbb: one\n    two\n     three\n"),
    "quoted text over several lines": (
        "a: 'one  \n\n  two'\nb: \"one \\\n two\\ \n three\"\n",
        "a: 'one\n\n  two'\n\nb: \"one \\\n  two\\ \n  three\"\n",
    ),
    "literal text goes with its key": (
        "a:\n    b: | # x\n            one  \n              two\n\n            three\n\n\n    c: 1\n",
        "a:\n  b: |  # x\n    one  \n      two\n\n    three\n\n  c: 1\n",
    ),
    "folded text with chomping": ("a: >-\n      one\n      two\n\nb: 1\n", "a: >-\n  one\n  two\n\nb: 1\n"),
    "literal text that states its indentation": (
        "a:\n   b: |4-\n         one\n       two\n",
        "a:\n  b: |4-\n        one\n      two\n",
    ),
    "text that keeps its blank lines": ("a: |+\n   one\n\n\nb: 1\n", "a: |+\n  one\n\n\nb: 1\n"),
    "no blank line is added to such text": ("a: |+\n  one\n# x\nb: 1\n", "a: |+\n  one\n# x\nb: 1\n"),
    "literal text that the file cuts off": ("a: |\n  one", "a: |\n  one\n"),
    "literal text in an item": ("a:\n- |\n one\n- >\n  two\n", "a:\n  - |\n    one\n  - >\n    two\n"),
    "markers of a document": ("--- # x\na: 1\n...\n#y\n", "---  # x\na: 1\n...\n# y\n"),
    "what looks like a marker": ("   --- a: 1\n   b: 2\n", "  --- a: 1\n\n  b: 2\n"),
    "a lone scalar": ("  a\n  ...\n", "a\n  ...\n"),
    "letters outside ASCII": ("é:   1\nüü:  2\n", "é:  1\n\nüü: 2\n"),
    "tabs between words": ("a:\t1\t# x\nb:\t{c:\t2}\n", "a: 1  # x\n\nb: {c: 2}\n"),
}


@pytest.mark.parametrize("before, after", PAIRS.values(), ids=PAIRS)
def test_rule_formats_its_example(before: str, after: str) -> None:
    assert format_text(before) == after
    assert format_text(after) == after


@pytest.mark.parametrize("path", worked_nodes(), ids=lambda path: path.stem)
def test_nodes_of_the_repository_are_formatted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_text(text) == text


@pytest.mark.parametrize("text", ["", "# only\n", "a: [", "a: &x 1\n", "a: 1\na: 2\n", "- " * 100, "a: !t 1\n" * 3])
def test_invalid_yaml_is_not_formatted(text: str) -> None:
    bag = DiagnosticBag(SourceFile("test.vsp", text))
    assert format_source(bag) is None
    assert bag.has_errors


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85"])
def test_unusual_line_break_is_an_ordinary_character(character: str) -> None:
    assert format_text(f"a:    1\nb: 'x{character}y'\n") == f"a: 1\n\nb: 'x{character}y'\n"


def test_text_with_another_meaning_is_never_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("a: 2\n", "a: '1'\n", "a: [1]\n", "a: 1\nb: 2\n", "a: [\n"):
        monkeypatch.setattr(formatter, "lines_to_text", {"wrong": wrong}.__getitem__)
        monkeypatch.setattr(formatter, "lay_out", lambda _: "wrong")
        with pytest.raises(FormatFault):
            format_text("a: 1\n")


SIZE = 256 * 1024
HOSTILE = {
    "flow": "a: [" + "b," * (SIZE // 2) + "]",
    "rows": "".join(f"- {{a: {number},  b: {number}}}\n" for number in range(10_000)),
    "comments": "a: 1\n" + "#c\n" * (SIZE // 3),
    "blank lines": "a: 1" + "\n" * SIZE + "b: 2",
    "spaces": "a:" + " " * SIZE + "b",
    "literal text": "a: |\n" + "  x\n" * (SIZE // 4),
    "quoted text": 'a: "' + "x\n " * (SIZE // 4) + '"',
    "brackets": "[" * SIZE,
    "dashes": "- " * (SIZE // 2),
    "anchors": "- &a x\n" * (SIZE // 8),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_file_is_formatted_quickly(text: str) -> None:
    with processor_seconds(8):
        bag = DiagnosticBag(SourceFile("test.vsp", text))
        assert (format_source(bag) is None) == bag.has_errors
