"""The Unicode tables of Python and Rust, compared at every code point.

They come from two copies of the database and two programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vesper.kernels import text
from vesper.values import unicode

ROOT = Path(__file__).parents[3]
OURS = ROOT / "schemas" / "unicode" / "unicode_15_0_0.txt"
RUST = ROOT / "direct_runtime" / "unicode" / "extract.txt"
NAMES = {"gc": "category", "white_space": "white"}


def rows(path: Path, wanted: str) -> Iterator[list[str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        name, *fields = line.split() or ["#"]
        if NAMES.get(name, name) == wanted:
            yield fields


def code_points() -> Iterator[int]:
    yield from (*range(0xD800), *range(0xE000, 0x110000))


@pytest.fixture(scope="module")
def tables() -> dict[str, dict[int, str]]:
    """Return the results of the functions for every code point with one."""
    functions: dict[str, Callable[[int], str]] = {
        "lower": lambda each: text.lower(chr(each)),
        "upper": lambda each: text.upper(chr(each)),
        "fold": lambda each: chr(unicode.fold(each)),
    }
    found = {
        name: {each: to for each in code_points() if (to := function(each)) != chr(each)}
        for name, function in functions.items()
    }
    found["category"] = {each: name for each in range(0x110000) if (name := unicode.category(each)) != "Cn"}
    found["white"] = {each: "" for each in code_points() if unicode.is_white_space(each)}
    return found


def by_range(extract: Path, name: str) -> dict[int, str]:
    return {
        each: fields[2] if name == "category" else ""
        for fields in rows(extract, name)
        for each in range(int(fields[0], 16), int(fields[1], 16) + 1)
    }


@pytest.mark.parametrize("extract", [OURS, RUST], ids=["python", "rust"])
def test_tables_equal_the_extract_at_every_code_point(extract: Path, tables: dict[str, dict[int, str]]) -> None:
    assert tables["category"] == by_range(extract, "category")
    assert tables["white"] == by_range(extract, "white")
    for name in ("lower", "upper", "fold"):
        wanted = {int(start, 16): "".join(chr(int(each, 16)) for each in to) for start, *to in rows(extract, name)}
        assert tables[name] == wanted
        assert len(wanted) > 1_000


def test_folding_is_idempotent(tables: dict[str, dict[int, str]]) -> None:
    assert all(unicode.fold(ord(to)) == ord(to) for to in tables["fold"].values())


def test_case_mapping_ignores_context() -> None:
    assert text.lower("ΟΔΥΣΣΕΥΣ") == "οδυσσευσ"
    assert text.lower("Iİ") == "ii\u0307"
    assert text.upper("straße ﬁ ŉ") == "STRASSE FI ʼN"
    assert text.upper("ǆ") == "Ǆ"
