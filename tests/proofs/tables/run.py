"""Compare random decision tables with a brute-force oracle: gaps, overlaps, unreached rows, and values of all engines.

python -m tests.proofs.tables.run [TABLES [NODES]]
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from random import Random
from typing import Any

from tests.proofs.robustness.proof import write_proof
from tests.proofs.tables.compare import check_analysis, check_values
from tests.proofs.tables.drawn import draw_table
from vesper.language.tables.model import HITS

TABLES = 1_000
NODES = 1_100
_FIRST_NODE = 1_000_000


def compare(tables: int, nodes: int) -> dict[str, Any]:
    """Return how often each answer occurred; raise an `AssertionError` at the first difference."""
    answers: Counter[str] = Counter()
    for seed in range(tables):
        answers.update(name for name, found in check_analysis(draw_table(Random(seed))).items() if found)
    runs: Counter[str] = Counter()
    for number in range(nodes):
        random = Random(_FIRST_NODE + number)
        table, hit = draw_table(random), HITS[number % len(HITS)]
        runs[hit] += check_values(table, hit, random.random() < 0.5 and hit != "count", random)
    return {"tables": tables, "with": dict(answers), "nodes": nodes, "runs": dict(runs), "differences": 0}


def main(arguments: list[str]) -> int:
    sizes = [int(each) for each in arguments] + [TABLES, NODES][len(arguments) :]
    summary = compare(sizes[0], sizes[1])
    if not arguments:
        write_proof("tables", summary)
    print(json.dumps(summary, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
