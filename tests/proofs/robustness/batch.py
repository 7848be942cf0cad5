"""A stream of ten million rows through a node, in little memory: `make proof-batch`.

The rows are made as they are asked for and dropped as they are answered, so that what stays is what a batch holds. Rows
repeat, and each answer is compared with that of the same row in a small table: rows that were mixed up would show.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

import vesper

NODES = Path(__file__).parents[3] / "nodes"
ROWS_A_BATCH = 50_000


def payments() -> pa.RecordBatch:
    """Rows of every kind; those of one batch are those of all."""
    places = range(ROWS_A_BATCH)
    return pa.record_batch(
        {
            "amount": pa.array([Decimal(place % 150_007).scaleb(-2) for place in places], pa.decimal128(18, 2)),
            "balance": pa.array([Decimal(place % 99_991).scaleb(-1) for place in places], pa.decimal128(18, 2)),
            "currency": pa.array([("USD", "EUR", "GBP")[place % 3] for place in places]),
            "country": pa.array([("DE", "NG", "FR", "IR", "US")[place % 5] for place in places]),
            "user_age_days": pa.array([place % 701 for place in places]),
            "flagged": pa.array([place % 11 == 0 for place in places]),
        }
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--megabytes", type=int, default=500, help="the most that the process may hold")
    parser.add_argument("--engine", default="jit", choices=("interp", "jit"), help="jit: blocks of rows, as words")
    asked = parser.parse_args()
    node = vesper.load("payment_decision", nodes=NODES, engine=asked.engine)
    batch = payments()
    expected = node.run_batch(pa.table(batch)).combine_chunks()

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(asked.rows // ROWS_A_BATCH):
            # Not the same memory each time: as from a file.
            yield pa.RecordBatch.from_arrays(
                [pa.concat_arrays([column]) for column in batch.columns], batch.schema.names
            )

    stream = pa.RecordBatchReader.from_batches(batch.schema, batches())
    began = time.perf_counter()
    rows = 0
    for part in node.run_batch(stream, threads=asked.threads):
        start = rows % ROWS_A_BATCH
        if not pa.table(part).equals(expected.slice(start, len(part))):
            print(f"rows {rows:,} to {rows + len(part):,} are not what the same rows were before", file=sys.stderr)
            return 1
        rows += len(part)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{rows:,} rows in {seconds:.1f} s, {rows / seconds:,.0f} rows/s, at most {peak:.0f} MB")
    if rows != asked.rows // ROWS_A_BATCH * ROWS_A_BATCH or peak > asked.megabytes:
        print(f"expected {asked.rows:,} rows within {asked.megabytes} MB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
