"""The sample of `make proof-data`: payments in one process, in polars and in DuckDB have one result."""

from __future__ import annotations

from pathlib import Path

from tests.proofs.data import run as proof

ROWS = 20_000


def test_the_same_payments_have_one_result(tmp_path: Path) -> None:
    given = proof.write_given(tmp_path, ROWS, files=4)
    found = [proof.run_place(name, given, tmp_path) for name in ("local", "polars", "duckdb")]
    assert {(each["rows"], each["errors"]) for each in found} == {(ROWS, ROWS // proof.ERROR_EVERY)}
    assert len({each["hash"] for each in found}) == 1


def test_another_value_has_another_hash(tmp_path: Path) -> None:
    from pyarrow import parquet

    given = proof.write_given(tmp_path, 100, files=1)
    proof.run_local(given, tmp_path / "local")
    before = proof.canonical_hash(tmp_path / "local")[0]
    (path,) = (tmp_path / "local").glob("*.parquet")
    rows = parquet.read_table(path)
    parquet.write_table(rows.slice(1), path)
    assert proof.canonical_hash(tmp_path / "local")[0] != before
