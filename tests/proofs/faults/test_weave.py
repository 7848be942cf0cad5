"""Every planted fault matches its place exactly once; one that does not is reported by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.proofs.faults.weave import (
    RUNTIME,
    Hook,
    Place,
    WeavingError,
    check,
    kinds_of,
    read_places,
    weave,
    woven_files,
)

PLACES = read_places()
FILE = "vesper-x/src/lib.rs"
SOURCE = """fn less(left: i64, right: i64) -> bool {
    left < right
}

fn clamp(value: i64) -> i64 {
    let value = value.min(9);
    value.max(0)
}
"""


def place(find: str, wrong: str = "wrong", right: str | None = None, name: str = "x.fault", file: str = FILE) -> Place:
    return Place(name, "guard", file, find, right or find, wrong)


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    path = tmp_path / "crates" / FILE
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE, encoding="utf-8")
    return tmp_path


def test_every_fault_matches_its_place_exactly_once() -> None:
    woven = check(PLACES)
    macros = re.findall(
        r'planted!\("([a-z0-9_.]+)"', "".join(text for file, text in woven.items() if "fault.rs" not in file)
    )
    assert sorted(macros) == sorted(each.name for each in PLACES)


def test_names_begin_with_a_place() -> None:
    for name in kinds_of(PLACES):
        assert re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", name)


def test_the_sources_of_users_have_no_faults() -> None:
    marks = re.compile(r'planted!|mod fault;|feature = "faults"|^faults = ', re.MULTILINE)
    crates = RUNTIME / "crates"
    files = [*crates.rglob("*.rs"), *crates.rglob("Cargo.toml"), RUNTIME / "Cargo.toml"]
    assert [path.name for path in files if marks.search(path.read_text(encoding="utf-8"))] == []


def test_a_right_expression_becomes_a_macro(runtime: Path) -> None:
    first = place("left < right", "left <= right")
    second = place("let value = value.min(9);", "9", right="value.min(9)", name="x.other")
    woven = woven_files([first, second], runtime)[f"crates/{FILE}"]
    assert '    vesper_ir::planted!("x.fault", left < right, left <= right)\n' in woven
    assert '    let value = vesper_ir::planted!("x.other", value.min(9), 9);\n' in woven


def test_the_crate_of_the_macro_names_it_otherwise() -> None:
    assert place("1", "2", file="vesper-ir/src/lib.rs").macro("1") == 'crate::planted!("x.fault", 1, 2)'


@pytest.mark.parametrize(
    "planted, problem",
    [
        (place("left > right"), f"x.fault: found 0 times in {FILE} instead of once: left > right"),
        (place("i64"), f"x.fault: found 4 times in {FILE} instead of once: i64"),
        (
            place("left < right", right="left == right"),
            "x.fault: found 0 times in its `find` instead of once: left == right",
        ),
        (
            place("let value = value.min(9);", right="value"),
            "x.fault: found 2 times in its `find` instead of once: value",
        ),
        (place("left", file="vesper-x/src/gone.rs"), "x.fault: there is no vesper-x/src/gone.rs"),
    ],
)
def test_a_text_that_is_missing_or_doubled_is_reported_by_name(runtime: Path, planted: Place, problem: str) -> None:
    with pytest.raises(WeavingError) as raised:
        woven_files([planted], runtime)
    assert str(raised.value) == problem


def test_all_that_do_not_fit_are_reported_together(runtime: Path) -> None:
    wrong = [place("nothing", name="x.one"), place("left < right"), place("i64", name="x.two")]
    with pytest.raises(WeavingError) as raised:
        woven_files(wrong, runtime)
    assert [line.partition(":")[0] for line in str(raised.value).splitlines()] == ["x.one", "x.two"]


def test_faults_must_not_overlap(runtime: Path) -> None:
    with pytest.raises(WeavingError, match=re.escape(f"x.one and x.two overlap in {FILE}")):
        woven_files([place("left < right", name="x.one"), place("< right", name="x.two")], runtime)


def test_a_hook_without_its_place_is_reported() -> None:
    assert Hook("a.rs", "mod b;\n", after="mod a;\n").added_to("mod a;\nmod c;\n") == "mod a;\nmod b;\nmod c;\n"
    with pytest.raises(WeavingError, match=r"found 0 times in a\.rs instead of once: mod a;"):
        Hook("a.rs", "mod b;\n", after="mod a;\n").added_to("mod c;\n")


ENTRY = "[[fault]]\nname = 'x.fault'\nfile = 'a.rs'\nfind = '1'\nwrong = '2'\n"


@pytest.mark.parametrize(
    "text, problem",
    [
        (ENTRY + "kind = 'guard'\nnote = 'x'\n", "x.fault in a.toml: missing or unknown: note"),
        (ENTRY.replace("wrong = '2'\n", ""), "x.fault in a.toml: missing or unknown: wrong"),
        (ENTRY, "x.fault: has 0 kinds, not one"),
        ((ENTRY + "kind = 'guard'\n") * 2, "x.fault: has 2 kinds, not one"),
    ],
)
def test_an_entry_with_wrong_fields_is_reported_by_name(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    with pytest.raises(WeavingError) as raised:
        read_places(tmp_path)
    assert str(raised.value) == problem


def test_a_second_place_needs_no_kind(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(ENTRY + "kind = 'guard'\n" + ENTRY, encoding="utf-8")
    places = read_places(tmp_path)
    assert [each.kind for each in places] == ["guard", None]
    assert kinds_of(places) == {"x.fault": "guard"}


def test_weaving_again_writes_only_what_changed(tmp_path: Path) -> None:
    manifest = weave(tmp_path)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    (tmp_path / "crates" / "stale.rs").write_text("", encoding="utf-8")
    changed = tmp_path / "crates" / "vesper-ir" / "src" / "fault.rs"
    changed.write_text("", encoding="utf-8")
    assert weave(tmp_path) == manifest
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert set(after) == set(kept)
    assert {path for path in after if after[path] != kept[path]} == {changed}
