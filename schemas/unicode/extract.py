"""Writer of `unicode_15_0_0.txt`, the extract of the Unicode Character Database.

    python schemas/unicode/extract.py FOLDER     FOLDER holds UnicodeData.txt and the others, of version 15.0.0

The Unicode Consortium publishes the files under Public/15.0.0/ucd; Debian 12 has them in the package
`unicode-data` 15.0.0-1, under usr/share/unicode. Each must have the SHA-256 below. The extract is committed, so this
runs again only for another version of Unicode. `schemas/emit/unicode.py` writes the Python tables from it; the Rust
tables come from another program and another copy of the database, and a test compares both.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

SHA256 = {
    "UnicodeData.txt": "806e9aed65037197f1ec85e12be6e8cd870fc5608b4de0fffd990f689f376a73",
    "SpecialCasing.txt": "78b29c64b5840d25c11a9f31b665ee551b8a499eca6c70d770fcad7dd710f494",
    "CaseFolding.txt": "cdd49e55eae3bbf1f0a3f6580c974a0263cb86a6a08daa10fbf705b4808a56f7",
    "PropList.txt": "e05c0a2811d113dae4abd832884199a3ea8d187ee1b872d8240a788a96540bfd",
    "CompositionExclusions.txt": "3b019c0a33c3140cbc920c078f4f9af2680ba4f71869c8d4de5190667c70b6a3",
}
EXTRACT = Path(__file__).parent / "unicode_15_0_0.txt"
HEAD = """\
# Unicode 15.0.0: what the language uses of it. Written by schemas/unicode/extract.py from these files:
{sources}
#
# category FIRST LAST NAME   the general category of these code points; those that no line names are Cn
# white FIRST LAST           the property White_Space
# lower, upper FROM TO...    the full mapping: SpecialCasing.txt without conditions, otherwise UnicodeData.txt
# fold FROM TO               the simple case folding: C and S of CaseFolding.txt
# class FIRST LAST NUMBER    the canonical combining class; code points without a line have class 0
# split FROM TO...           the canonical decomposition, one step; Hangul syllables follow a rule
# part FROM TO...            the compatibility decomposition, one step
# whole FROM                 code points with a canonical decomposition that no composition yields
"""


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    texts = {name: _read_verified(Path(sys.argv[1]) / name, wanted) for name, wanted in SHA256.items()}
    sources = "\n".join(f"#   {name} {wanted}" for name, wanted in SHA256.items())
    lines = [*_categories(texts), *_white_space(texts), *_mappings(texts), *_folding(texts), *_decompositions(texts)]
    EXTRACT.write_text(HEAD.format(sources=sources) + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


def _read_verified(path: Path, wanted: str) -> str:
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != wanted:
        raise SystemExit(f"{path} has SHA-256 {found}, not {wanted}")
    return content.decode("utf-8")


def _rows(text: str) -> Iterator[list[str]]:
    """Yield the fields of every line that has some."""
    for line in text.splitlines():
        content = line.partition("#")[0].strip()
        if content:
            yield [field.strip() for field in content.split(";")]


def _categories(texts: dict[str, str]) -> Iterator[str]:
    runs: list[tuple[int, int, str]] = []
    first = None
    for row in _rows(texts["UnicodeData.txt"]):
        code_point, name, category = int(row[0], 16), row[1], row[2]
        if name.endswith(", First>"):
            first = code_point
            continue
        start = code_point if first is None else first
        first = None
        if runs and runs[-1][1] == start - 1 and runs[-1][2] == category:
            runs[-1] = (runs[-1][0], code_point, category)
        else:
            runs.append((start, code_point, category))
    return (f"category {start:04X} {end:04X} {category}" for start, end, category in runs)


def _white_space(texts: dict[str, str]) -> Iterator[str]:
    for points, name in (row[:2] for row in _rows(texts["PropList.txt"])):
        if name == "White_Space":
            first, _, last = points.partition("..")
            yield f"white {first} {last or first}"


def _mappings(texts: dict[str, str]) -> Iterator[str]:
    lower: dict[int, str] = {}
    upper: dict[int, str] = {}
    for row in _rows(texts["UnicodeData.txt"]):
        for found, mapping in ((upper, row[12]), (lower, row[13])):
            if mapping:
                found[int(row[0], 16)] = mapping
    for row in _rows(texts["SpecialCasing.txt"]):
        # code; lower; title; upper; conditions; -- the last only if present.
        if len(row) == 5:
            lower[int(row[0], 16)] = row[1]
            upper[int(row[0], 16)] = row[3]
    for name, mappings in (("lower", lower), ("upper", upper)):
        for code_point, mapping in sorted(mappings.items()):
            if mapping != f"{code_point:04X}":
                yield f"{name} {code_point:04X} {mapping}"


def _folding(texts: dict[str, str]) -> Iterator[str]:
    for code_point, status, mapping in (row[:3] for row in _rows(texts["CaseFolding.txt"])):
        if status in ("C", "S"):
            yield f"fold {code_point} {mapping}"


def _decompositions(texts: dict[str, str]) -> Iterator[str]:
    classes: list[tuple[int, int, str]] = []
    pairs: dict[int, tuple[str, list[str]]] = {}
    for row in _rows(texts["UnicodeData.txt"]):
        code_point = int(row[0], 16)
        if row[3] != "0":
            if classes and classes[-1][1] == code_point - 1 and classes[-1][2] == row[3]:
                classes[-1] = (classes[-1][0], code_point, row[3])
            else:
                classes.append((code_point, code_point, row[3]))
        if row[5]:
            kind, mapping = ("part", row[5].split()[1:]) if row[5].startswith("<") else ("split", row[5].split())
            pairs[code_point] = kind, mapping
    marked = {point for first, last, _ in classes for point in range(first, last + 1)}
    excluded = {int(row[0], 16) for row in _rows(texts["CompositionExclusions.txt"])}
    yield from (f"class {first:04X} {last:04X} {number}" for first, last, number in classes)
    for code_point, (kind, mapping) in sorted(pairs.items()):
        yield f"{kind} {code_point:04X} {' '.join(mapping)}"
    for code_point, (kind, mapping) in sorted(pairs.items()):
        is_alone = len(mapping) == 1 or code_point in marked or int(mapping[0], 16) in marked
        if kind == "split" and (is_alone or code_point in excluded):
            yield f"whole {code_point:04X}"


if __name__ == "__main__":
    raise SystemExit(main())
