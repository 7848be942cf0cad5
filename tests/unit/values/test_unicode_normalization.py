"""Normalisation forms: the two extracts agree, and both engines at every code point that has a decomposition."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from tests.support.nodes import expression_node
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.values.types import STRING, ArrayOf
from vesper.values.unicode import normalize

ROOT = Path(__file__).parents[3]
FORMS = ("nfc", "nfd", "nfkc", "nfkd")


def rows(path: str, name: str) -> set[tuple[str, ...]]:
    lines = (line.split() for line in (ROOT / path).read_text(encoding="utf-8").splitlines())
    return {tuple(fields[1:]) for fields in lines if fields and fields[0] == name}


def test_two_copies_of_the_database_have_equal_decompositions() -> None:
    for ours, rust in (("split", "dm"), ("part", "dmk")):
        assert rows("schemas/unicode/unicode_15_0_0.txt", ours) == rows("direct_runtime/unicode/extract.txt", rust)


def test_engines_normalize_every_decomposition_and_its_reversal_alike() -> None:
    parts = sorted(rows("direct_runtime/unicode/extract.txt", "dm") | rows("direct_runtime/unicode/extract.txt", "dmk"))
    words = ["".join(chr(int(code, 16)) for code in row) for row in parts]
    words += [word[::-1] for word in words] + [chr(0xAC00 + place * 97) for place in range(115)]
    # Marks of several classes behind a letter, in every order that a shift of the list makes.
    marks = [chr(int(row[0], 16)) for row in sorted(rows("direct_runtime/unicode/extract.txt", "ccc"))]
    words += ["a" + "".join(marks[place::151]) for place in range(151)]
    for form in FORMS:
        compiled = expression_node(f"[normalize(x, {form}) FOR x IN words]", {"words": ArrayOf(STRING)})
        outcomes = [ENGINES[name].load(compiled).call({"words": words}) for name in ("python", "interp")]
        assert all(isinstance(outcome, Returned) for outcome in outcomes)
        assert outcomes[0] == outcomes[1]


def test_forms_are_those_of_the_host_where_it_knows_the_characters() -> None:
    # Every host has Unicode 3.2, whose normalisation never changes.
    for row in rows("schemas/unicode/unicode_15_0_0.txt", "split"):
        character = chr(int(row[0], 16))
        if unicodedata.ucd_3_2_0.category(character) != "Cn":
            for form in ("NFC", "NFD"):
                assert normalize(character, form.lower()) == unicodedata.normalize(form, character)
