"""Mutants are drawn alike by one seed, fit their places, and are woven beside the code that is right."""

from __future__ import annotations

import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.proofs.faults.weave import RUNTIME
from tests.proofs.mutants.drawn.changes import changes
from tests.proofs.mutants.drawn.draw import candidates, draw, edited, shares
from tests.proofs.mutants.drawn.tokens import Source, code_blocks, enclosing_block, functions, tokenize
from tests.proofs.mutants.drawn.weaving import woven_file

FILE = "vesper-x/src/lib.rs"


def changed(body: str, kind: str) -> set[str]:
    """Return the bodies that changes of a kind make of one."""
    text = f"fn f() {{ {body} }}"
    source = Source(text)
    (function,) = functions(source)
    made = [edited(text, each.edits) for each in changes(source, function) if each.kind == kind]
    return {each.removeprefix("fn f() {").removesuffix("}").strip() for each in made}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a // b\nc", ["a", "c"]),
        ("a /* b /* c */ d */ e", ["a", "e"]),
        ('f("a \\" b") + 1', ["f", "(", '"a \\" b"', ")", "+", "1"]),
        ('r#"a " b"# b"c" br"d"', ['r#"a " b"#', 'b"c"', 'br"d"']),
        ("&'a str 'b' '\\'' '\\u{1F600}'", ["&", "'a", "str", "'b'", "'\\''", "'\\u{1F600}'"]),
        ("0..=9_u8 1.5e3 x.0 0xff_u64", ["0", "..=", "9_u8", "1.5e3", "x", ".", "0", "0xff_u64"]),
        ("a >>= b::<C>() => r#type", ["a", ">>=", "b", "::", "<", "C", ">", "(", ")", "=>", "r#type"]),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert [token.text for token in tokenize(text)] == expected


def test_brackets_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="closes"):
        Source("fn f() { (] }")


def test_tests_and_functions_of_the_compiler_are_left_out() -> None:
    text = """
fn one() { if x { 1 } else { 2 } }
#[cfg(test)]
mod tests { fn two() {} }
const fn three() -> u8 { 3 }
trait T { fn four(&self); fn five(&self) where Self: Sized { fn inner() {} } }
#[test]
fn six() {}
"""
    assert [each.name for each in functions(Source(text))] == ["one", "five"]


def test_blocks_of_statements_are_told_from_records_and_macros() -> None:
    text = (
        "fn f() { if a == (B { c }) { d(); } let e = G { h }; macro_rules! m { () => { i } } match j { K => { l } } }"
    )
    source = Source(text)
    (function,) = functions(source)
    blocks = code_blocks(source, function)
    assert [text[source.tokens[opening].end :].split(maxsplit=1)[0] for opening, _ in blocks] == ["if", "d();", "l"]
    place = text.index("d()")
    assert text[enclosing_block(source, blocks, place, place + 1) :].startswith(" d();")
    assert text[enclosing_block(source, blocks, text.index("h }"), text.index("h }") + 1) :].startswith(" if a")


@pytest.mark.parametrize(
    "kind, body, expected",
    [
        ("comparison", "a < b", {"a <= b", "a > b"}),
        ("comparison", "a::<B>(c) == d", {"a::<B>(c) != d"}),
        ("arithmetic", "-a + *b", {"-a - *b"}),
        ("arithmetic", "a += &b;", {"a -= &b;"}),
        ("logic", "a && !b", {"a || !b", "a && b"}),
        ("logic", "c(|| d, &&e, assert!(f), g != h)", set()),
        ("constant", "a.0[1_u8]", {"a.0[2_u8]", "a.0[0_u8]"}),
        ("constant", "0 + u8::MAX", {"1 + u8::MAX", "0 + (u8::MAX + 1)", "0 + (u8::MAX - 1)"}),
        ("constant", "0x10", {"17", "15"}),
        ("boolean", "Ok(true)", {"Ok(false)"}),
        ("guard", "if a || b { return; } c", {"if false && (a || b) { return; } c"}),
        ("guard", "if let Some(a) = b { return; } c", {"if let Some(a) = b && false { return; } c"}),
        ("guard", "if a { b(); } if c { return; } else { d() }", set()),
        ("guard", "match a { B if c(d) => e, _ => f }", {"match a { B => e, _ => f }"}),
        ("statement", "let a = b(); c(); d = 1; e", {"let a = b();  d = 1; e", "let a = b(); c();  e"}),
        ("early return", "a()?; b", {"let _ = a(); b"}),
        ("early return", "if a { return b; } return c;", {"if a { return b; }"}),
        ("swapped arguments", "a(b, c(d), c(d))", {"a(c(d), b, c(d))"}),
        ("swapped arguments", "a(|b, c| d, e)", set()),
        ("swapped arms", "match a { B => c, D => { e } }", {"match a { B => { e }, D => c }"}),
        ("result", "a.min(b)", {"a.max(b)"}),
        ("result", "Some(a)", {"None"}),
        ("result", "0..n", {"0..=n"}),
        ("result", "a.iter().rev()", {"a.iter().rev().rev()", "a.iter()"}),
    ],
)
def test_changes(kind: str, body: str, expected: set[str]) -> None:
    assert changed(body, kind) == expected


@pytest.mark.parametrize("body", ["debug_assert!(a < 1);", "#[allow(b = 1)] c;", "let d = Vec::with_capacity(e + 1);"])
def test_code_without_effect_is_not_changed(body: str) -> None:
    assert {each.kind for each in candidates(FILE, f"fn f() {{ {body} }}")} <= {"statement"}


def test_a_name_does_not_depend_on_the_line() -> None:
    text = "fn f() {\n    a < b\n}\n"
    names = [each.name for each in candidates(FILE, text)]
    assert len(set(names)) == len(names) == 2
    assert [each.name for each in candidates(FILE, f"// moved\n\n{text}")] == names
    assert not {each.name for each in candidates("vesper-y/src/lib.rs", text)} & set(names)
    twice = candidates(FILE, "fn f() {\n    a < b;\n    a < b;\n}\n")
    assert len({each.name for each in twice}) == len(twice)


def test_shares_add_up() -> None:
    assert shares({"a": 1, "b": 1, "c": 1}, 100) == {"a": 34, "b": 33, "c": 33}
    assert shares({"a": 999, "b": 1}, 10) == {"a": 10, "b": 0}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    crates = tmp_path_factory.mktemp("crates")
    for name in ("vesper-opt/src/intervals/range.rs", "vesper-kernels/src/integer.rs", "vesper-ir/src/value/order.rs"):
        path = crates / name
        path.parent.mkdir(parents=True)
        path.write_text((RUNTIME / "crates" / name).read_text(encoding="utf-8"), encoding="utf-8")
    return crates


def test_one_seed_draws_the_same(small: Path) -> None:
    drawn, lines = draw(small, 5)
    assert draw(small, 5) == (drawn, lines)
    assert draw(small, 6)[0] != drawn
    assert set(drawn) == {"vesper-ir", "vesper-kernels", "vesper-opt"} == set(lines)


def test_a_change_of_other_lines_draws_the_same(small: Path, tmp_path: Path) -> None:
    shutil.copytree(small, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "vesper-kernels/src/integer.rs"
    file.write_text(f"fn added() -> u8 {{\n    1 + 2\n}}\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    before, after = ({each.name for each in draw(path, 5)[0]["vesper-kernels"][:30]} for path in (small, tmp_path))
    assert len(before - after) <= 3


def test_kinds_take_turns_and_do_not_overlap(small: Path) -> None:
    for found in draw(small, 5)[0].values():
        first = Counter(each.kind for each in found[:8])
        assert max(first.values()) <= 2, first
        spans = sorted((each.file, *each.span) for each in found)
        assert all(one[0] != two[0] or one[2] < two[1] for one, two in pairwise(spans))


def test_a_function_keeps_its_own_body_beside_those_of_mutants() -> None:
    text = "fn f(a: u8) -> u8 {\n    if a < 1 { return 2; }\n    a\n}\n"
    found = candidates(FILE, text)
    chosen = [each for each in found if each.kind in {"comparison", "boolean"}][:2]
    numbers = {each.name: number for number, each in enumerate(chosen)}
    woven, variants = woven_file(FILE, text, chosen, numbers)
    assert "if vesper_ir::fault::is_selected(0) {\n    if a <= 1 { return 2; }" in woven
    assert "else if vesper_ir::fault::is_selected(1) {\n    if a > 1 { return 2; }" in woven
    notes = " vesper_ir::fault::note(0); vesper_ir::fault::note(1);"
    assert woven.endswith(f"else {{{notes}\n    if a < 1 {{ return 2; }}\n    a\n}} }}\n")
    for each in variants:
        assert len(each.mutants) in (1, 2)
        assert woven[each.start : each.end].startswith("{")
    unwoven, none = woven_file(FILE, text, [], {})
    assert (unwoven, none) == (text, [])
