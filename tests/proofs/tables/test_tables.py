"""A sample of the random tables: the analysis and every engine agree with the oracle."""

from __future__ import annotations

from tests.proofs.tables.run import compare
from vesper.language.tables.model import HITS


def test_tables_agree_with_the_oracle() -> None:
    found = compare(tables=150, nodes=2 * len(HITS))
    assert set(found["with"]) == {"gap", "overlap", "conflict", "unreached"}
    assert all(found["runs"][hit] for hit in HITS if hit not in ("unique", "any"))
