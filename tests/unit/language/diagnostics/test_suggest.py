"""`did you mean`: close names only, at most two."""

from __future__ import annotations

import pytest

from vesper.language.diagnostics.suggest import did_you_mean, did_you_mean_node, edit_distance, suggestions


def test_close_names_first() -> None:
    assert suggestions("ammount", ["amount", "amounts", "count", "balance"]) == ["amount", "amounts"]
    assert suggestions("Amount", ["amount"]) == ["amount"]
    assert suggestions("xyz", ["amount"]) == []
    assert suggestions("b", ["a"]) == []
    assert did_you_mean("fe", ["fee"]) == "did you mean `fee`?"
    assert did_you_mean("zzz", ["fee"]) is None


@pytest.mark.parametrize(
    "word, meant",
    [
        ("charge", "did you mean `charge_order`?"),
        ("charge_v1", "did you mean `charge_order`?"),
        ("order", "did you mean `charge_order` or `cancel_order_late`?"),
        ("cancel_order_lat", "did you mean `cancel_order_late` or `cancel_order_late_v1`?"),
        ("char", None),
        ("o", None),
    ],
)
def test_a_node_is_suggested_by_a_part_of_its_name(word: str, meant: str | None) -> None:
    known = ["charge_order_v1", "charge_order_v2", "charge_order", "cancel_order_late_v1", "cancel_order_late", "tax"]
    assert did_you_mean_node(word, known) == meant


def test_distance() -> None:
    assert edit_distance("abc", "acb", 5) == 1, "two neighbours swapped are one edit"
    assert edit_distance("kitten", "sitting", 5) == 3
    assert edit_distance("short", "very much longer", 3) == 4
