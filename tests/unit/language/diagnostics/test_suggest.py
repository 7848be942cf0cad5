"""`did you mean`: close names only, at most two."""

from __future__ import annotations

from vesper.language.diagnostics.suggest import did_you_mean, edit_distance, suggestions


def test_close_names_first() -> None:
    assert suggestions("ammount", ["amount", "amounts", "count", "balance"]) == ["amount", "amounts"]
    assert suggestions("Amount", ["amount"]) == ["amount"]
    assert suggestions("xyz", ["amount"]) == []
    assert suggestions("b", ["a"]) == []
    assert did_you_mean("fe", ["fee"]) == "did you mean `fee`?"
    assert did_you_mean("zzz", ["fee"]) is None


def test_distance() -> None:
    assert edit_distance("abc", "acb", 5) == 1, "two neighbours swapped are one edit"
    assert edit_distance("kitten", "sitting", 5) == 3
    assert edit_distance("short", "very much longer", 3) == 4
