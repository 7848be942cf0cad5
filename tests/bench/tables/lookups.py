"""Time of tables with the rows of a file: the check of 100,000 rows, and calls beside a table of 10 rows.

Processor time of this process; run it on an optimised CPython, alone on the machine.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import vesper
from vesper.compiler.pipeline import compile_file

ROWS = 100_000
CALLS = 20_000
NODE = """\
node_id: {name}
type: function
intent: Find the price of a parcel
inputs: {{zip: integer, weight: decimal, country: string}}
outputs:
  success: {{price: optional<decimal>}}
flow:
  - step: price
    operation: decision_table
    outputs: {{price: decimal}}
    rows: {{file: {name}.csv}}
  - return: [price]
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        many = _write(Path(folder), "many_rows_v1", ROWS)
        few = _write(Path(folder), "few_rows_v1", 10)
        start = time.process_time()
        compiled, _ = compile_file(many)
        assert compiled is not None
        print(f"check of {ROWS:,} rows: {time.process_time() - start:.2f} s of processor")
        for engine in ("python", "interp", "jit"):
            times = [_call_time(path, engine) for path in (few, many)]
            few_time, many_time = times
            print(f"{engine}: a call {few_time:.2f} us on 10 rows, {many_time - few_time:+.2f} us on {ROWS:,}")
    return 0


def _write(folder: Path, name: str, rows: int) -> Path:
    chance = random.Random(rows)
    lines = ["zip,weight,country,price"]
    for row in range(rows):
        low = row % 50 * 10
        country = chance.choice(("DE", "FR", "AT", "-"))
        lines.append(f"{10_000 + row // 50},[{low}..{low + 10}),{country},{chance.randrange(1_000) / 100:.2f}")
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = folder / f"{name}.vsp"
    path.write_text(NODE.format(name=name), encoding="utf-8")
    return path


def _call_time(path: Path, engine: str) -> float:
    node = vesper.load(path, engine=engine)
    chance = random.Random(7)
    inputs = [
        {"zip": 10_000 + chance.randrange(2_000), "weight": chance.randrange(500), "country": "DE"}
        for _ in range(CALLS)
    ]
    node.call(inputs[0])
    rounds = []
    for _ in range(5):
        start = time.process_time()
        for each in inputs:
            node.call(each)
        rounds.append((time.process_time() - start) / CALLS * 1e6)
    return statistics.median(rounds)


if __name__ == "__main__":
    sys.exit(main())
