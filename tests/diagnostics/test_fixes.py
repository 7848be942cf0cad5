"""Fixes: what is repaired, what is only suggested, and what is left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vesper.cli.check.fixing import repair_file
from vesper.compiler import compile_bytes, compile_source
from vesper.compiler.fixing import with_proved_fixes
from vesper.language.diagnostics.explanations import EXPLANATIONS
from vesper.language.diagnostics.fix import Edit, Safety, apply_edits, can_be_applied_together
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax.expression_slot import quote_scalar

NODE = """\
node_id: test_v1
type: function
intent: Test
inputs:
  a: decimal
  n: integer
  s: string
  ok: boolean
outputs:
  success:
    r: decimal
contracts:
  preconditions:
    - CLAUSE
    - n > 0
flow:
  - step: r
    operation: compute
    value: VALUE
  - operation: return
    success: [r]
"""


def node(clause: str = "a > 0", value: str = "a") -> str:
    return NODE.replace("CLAUSE", clause).replace("VALUE", value)


def repaired(text: str, folder: Path) -> str:
    """What `--fix` makes of a node."""
    path = folder / "test.vsp"
    path.write_bytes(text.encode())
    _, bag = compile_source(SourceFile(path.as_posix(), text))
    done = repair_file(path, bag.source, bag.sorted())
    written = path.read_bytes().decode()
    assert written == done.source.text
    assert (written != text) == bool(done.applied)
    compiled, _ = compile_bytes("test.vsp", path.read_bytes())
    assert done.is_wrong == (compiled is None)
    assert list(folder.iterdir()) == [path]
    return written


# -- clauses and values ---------------------------------------------------------------------------

CLAUSES = {
    "a = 0": "a == 0",
    "a=0": "a==0",
    "a = -1": "a == -1",
    "a =-1": "a ==-1",
    "a === 0": "a == 0",
    "a =< 0": "a <= 0",
    "ok & a > 0": "ok AND a > 0",
    "ok && a > 0": "ok AND a > 0",
    "ok&a > 0": "ok AND a > 0",
    "(ok)&(ok)": "(ok) AND (ok)",
    "ok | a > 0": "ok OR a > 0",
    "ok || a > 0": "ok OR a > 0",
    "a > 0 AND !ok": "a > 0 AND NOT ok",
    "a > 0 &&!ok": "a > 0 AND NOT ok",
    "(!ok) OR ok": "(NOT ok) OR ok",
    "a = 1 && !ok || n = 2": "a == 1 AND NOT ok OR n == 2",
    '"a = 0"': '"a == 0"',
    "'a = 0'": "'a == 0'",
    "!ok": "NOT ok",
    "!ok AND a > 0": "NOT ok AND a > 0",
    "!(a > 0)": "NOT (a > 0)",
    "a = 0  # a = 0": "a == 0  # a = 0",
    "s == 'a: b'": "\"s == 'a: b'\"",
    "s == 'a: b'  # why": "\"s == 'a: b'\"  # why",
    's == "a: b"': "'s == \"a: b\"'",
    "s == 'a: b' OR s == \"c\"": "'s == ''a: b'' OR s == \"c\"'",
    "s == 'a #b'": "\"s == 'a #b'\"",
    "'x' == s": "\"'x' == s\"",
    "'x' == s  # a comment": "\"'x' == s\"  # a comment",
    '"x" == s': "'\"x\" == s'",
    "'a: #b' == s OR ok": "\"'a: #b' == s OR ok\"",
    "s == 'é: 😀' ": "\"s == 'é: 😀'\" ",
}


@pytest.mark.parametrize("before, after", CLAUSES.items(), ids=CLAUSES)
def test_a_clause_is_repaired(before: str, after: str, tmp_path: Path) -> None:
    text = repaired(node(clause=before), tmp_path)
    assert text == node(clause=after)
    compiled, bag = compile_source(SourceFile("test.vsp", text))
    assert compiled is not None, [each.headline for each in bag.sorted()]
    assert repaired(text, tmp_path) == text


VALUES = {
    "IF s == 'a: b' THEN a ELSE 0": "\"IF s == 'a: b' THEN a ELSE 0\"",
    "IF n = 1 THEN a ELSE 0": "IF n == 1 THEN a ELSE 0",
    "IF !ok THEN a ELSE 0": "IF NOT ok THEN a ELSE 0",
    ">\n      IF n = 1\n      THEN a ELSE 0": ">\n      IF n == 1\n      THEN a ELSE 0",
}


@pytest.mark.parametrize("before, after", VALUES.items(), ids=VALUES)
def test_a_value_is_repaired(before: str, after: str, tmp_path: Path) -> None:
    assert repaired(node(value=before), tmp_path) == node(value=after)


LEFT_ALONE = [
    "a =! 0",
    "a += 1",
    "n & 1 == 0",
    "ok &&& ok",
    "ok &| ok",
    "ok == !ok",
    "!!ok",
    "a := 0",
    "a ; ok",
    "s == 'open",
    "s == 'it's & x'",
    "total = a + n",
    "aa = 0",
    "[a > 0]",
    "{a: b}",
    "a: b > 0",
    "&x a > 0",
    "'x' == t",
    "'x': s",
    "a > 0 } & ok",
]


@pytest.mark.parametrize("clause", LEFT_ALONE)
def test_what_could_mean_something_else_is_left_alone(clause: str, tmp_path: Path) -> None:
    assert repaired(node(clause=clause), tmp_path) == node(clause=clause)


@pytest.mark.parametrize(
    "old, new",
    [
        ("intent: Test", "intent: Test type: function"),
        ("intent: Test", "intent: !Test"),
        ("  a: decimal", "  a: {type: string, default: !x}"),
        ("contracts:", "constants:\n  c:\n    type: string\n    value: !x\ncontracts:"),
        ("contracts:", "constants:\n  c:\n    type: string\n    value: 'x' y\ncontracts:"),
        ("contracts:", "constants:\n  c:\n    type: set<string>\n    value:\n      - !x\ncontracts:"),
        ("contracts:", "constants:\n  c:\n    type: set<string>\n    value:\n      - 'x' y\ncontracts:"),
        ("  a: decimal", "  a: decimal\n    b: decimal"),
        ("    value: a", "    value: a when: ok"),
    ],
)
def test_what_is_no_expression_is_left_alone(old: str, new: str, tmp_path: Path) -> None:
    text = node().replace(old, new)
    assert text != node()
    assert repaired(text, tmp_path) == text


def test_rows_are_repaired(tmp_path: Path) -> None:
    table = node().replace("compute\n    value: a", "decision_table\n    rows:\n      - ROW\n      - {otherwise: 2}")
    for before, after in {
        "{when: n = 1, then: 1}": "{when: n == 1, then: 1}",
        "when: s == 'a: b'\n        then: 1": "when: \"s == 'a: b'\"\n        then: 1",
        "when: !ok\n        then: 1": "when: NOT ok\n        then: 1",
    }.items():
        assert repaired(table.replace("ROW", before), tmp_path) == table.replace("ROW", after)


def test_an_enum_in_braces_gets_quotes(tmp_path: Path) -> None:
    text = node().replace("  s: string", "  s: {type: enum[x, y], default: x}")
    assert repaired(text, tmp_path) == text.replace("enum[x, y]", "'enum[x, y]'")
    text = node().replace("contracts:", "constants:\n  c: {type: set<enum[x, y]>, value: [x]}\ncontracts:")
    assert repaired(text, tmp_path) == text.replace("set<enum[x, y]>", "'set<enum[x, y]>'")


def test_fixes_go_on_round_after_round(tmp_path: Path) -> None:
    text = node("'x' == s", "IF !ok THEN a ELSE 0").replace("- n > 0", '- "y" == s OR ok\n    - n = 1')
    fixed = node("\"'x' == s\"", "IF NOT ok THEN a ELSE 0").replace("- n > 0", "- '\"y\" == s OR ok'\n    - n == 1")
    assert repaired(text, tmp_path) == fixed


def test_one_line_that_cannot_be_repaired_does_not_stop_the_others(tmp_path: Path) -> None:
    text = node("a =! 0", "IF n = 1 THEN a ELSE 0")
    assert repaired(text, tmp_path) == node("a =! 0", "IF n == 1 THEN a ELSE 0")


# -- tabs -----------------------------------------------------------------------------------------


def test_a_file_indented_with_tabs(tmp_path: Path) -> None:
    assert repaired(node().replace("  ", "\t"), tmp_path) == node()


def test_a_tab_among_spaces_has_the_one_width_that_fits(tmp_path: Path) -> None:
    assert repaired(node().replace("  n: integer", "\tn: integer"), tmp_path) == node()
    assert repaired(node().replace("    operation: compute", "\toperation: compute"), tmp_path) == node()


def test_a_tab_that_could_be_two_depths_is_left_alone(tmp_path: Path) -> None:
    text = node().replace("  a: decimal\n", "  a:\n\ttype: decimal\n").replace("  n: integer\n", "")
    assert repaired(text, tmp_path) == text
    # Eight columns in, this goes on with the clause above: `a > 0 - n > 0`.
    text = node().replace("    - n > 0", "\t- n > 0")
    assert repaired(text, tmp_path) == text


def test_tabs_are_replaced_although_other_errors_stay(tmp_path: Path) -> None:
    assert repaired(node("aa > 0").replace("  ", "\t"), tmp_path) == node("aa > 0")


# -- the file -------------------------------------------------------------------------------------


def test_line_ends_stay_as_they_are(tmp_path: Path) -> None:
    dos = node("n == 1").replace("\n", "\r\n")
    assert repaired(dos.replace("  ", "\t"), tmp_path) == dos
    assert repaired(dos.replace("n == 1", "n = 1"), tmp_path) == dos
    assert repaired(dos.replace("n == 1", "'x' == s"), tmp_path) == dos.replace("n == 1", "\"'x' == s\"")


def test_the_mode_of_the_file_stays_and_a_link_is_not_written_through(tmp_path: Path) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    path = folder / "test.vsp"
    path.write_text(node("a = 0"))
    path.chmod(0o640)
    link = tmp_path / "link.vsp"
    link.symlink_to(path)
    _, bag = compile_source(SourceFile(link.as_posix(), node("a = 0")))
    with pytest.raises(OSError, match="links are not written through"):
        repair_file(link, bag.source, bag.sorted())
    assert path.read_text() == node("a = 0")
    repair_file(path, bag.source, bag.sorted())
    assert path.read_text() == node("a == 0")
    assert path.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()


def test_a_file_without_a_fix_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "test.vsp"
    path.write_text(node("aa > 0"))
    os.utime(path, ns=(0, 0))
    _, bag = compile_source(SourceFile(path.as_posix(), node("aa > 0")))
    repair_file(path, bag.source, bag.sorted())
    assert path.stat().st_mtime_ns == 0


# -- suggestions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, written, meant",
    [
        (node("ammount > 0").replace("  a: ", "  amount: "), "ammount", "amount"),
        (node().replace("contracts:", "contract:"), "contract", "contracts"),
        (node().replace("compute", "comptue"), "comptue", "compute"),
        (node("e == 'gren'").replace("  a: ", "  e: enum[red, green]\n  a: "), "gren", "green"),
        (node().replace("  a: decimal", "  a: decimla"), "decimla", "decimal"),
    ],
)
def test_a_close_name_is_suggested_and_never_applied(text: str, written: str, meant: str, tmp_path: Path) -> None:
    _, bag = compile_source(SourceFile("test.vsp", text))
    fixes = [each.fix for each in with_proved_fixes(bag.source, bag.sorted()) if each.fix]
    assert [fix.safety for fix in fixes] == [Safety.SUGGESTED]
    assert [(bag.source.slice(edit.span), edit.replacement) for edit in fixes[0].edits] == [(written, meant)]
    assert repaired(text, tmp_path) == text


def test_two_close_names_are_no_fix() -> None:
    text = node("amt1 > 0").replace("  a: decimal", "  amta: decimal\n  amtb: decimal\n  a: decimal")
    _, bag = compile_source(SourceFile("test.vsp", text))
    (diagnostic,) = with_proved_fixes(bag.source, bag.sorted())
    assert diagnostic.help == "did you mean `amta` or `amtb`?"
    assert diagnostic.fix is None


def test_a_fix_that_leaves_an_error_on_its_line_is_only_suggested() -> None:
    _, bag = compile_source(SourceFile("test.vsp", node("total = a + n")))
    (diagnostic,) = with_proved_fixes(bag.source, bag.sorted())
    assert diagnostic.fix is not None
    assert diagnostic.fix.safety is Safety.SUGGESTED


@pytest.mark.parametrize("number", ["VSP0002", "VSP0105"])
def test_the_explanations_promise_what_is_done(number: str, tmp_path: Path) -> None:
    about = EXPLANATIONS[number]
    assert about.bad is not None
    assert repaired(about.bad, tmp_path) == about.good


# -- edits ----------------------------------------------------------------------------------------


def test_edits_are_applied_in_any_order_and_once() -> None:
    edits = [Edit(Span(4, 5), "E"), Edit(Span(0, 1), "A"), Edit(Span(4, 5), "E"), Edit(Span(2, 2), "-")]
    assert apply_edits("abcdef", edits) == "Ab-cdEf"


def test_edits_that_overlap_are_seen() -> None:
    assert can_be_applied_together([Edit(Span(0, 2), "x"), Edit(Span(2, 4), "y")])
    assert can_be_applied_together([Edit(Span(0, 2), "x"), Edit(Span(0, 2), "x")])
    assert not can_be_applied_together([Edit(Span(0, 3), "x"), Edit(Span(2, 4), "y")])
    assert not can_be_applied_together([Edit(Span(2, 2), "x"), Edit(Span(2, 2), "y")])


@pytest.mark.parametrize("text", ["a", "it's", 'say "x"', "both ' and \"", "back\\slash", "'", '"'])
def test_a_quoted_text_is_read_back(text: str) -> None:
    source = SourceFile("test.vsp", node().replace("intent: Test", f"intent: {quote_scalar(text)}"))
    compiled, _ = compile_source(source)
    assert compiled is not None
    assert compiled.node.source.intent == text
