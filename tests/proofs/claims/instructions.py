"""Count the instructions of a call with and without the checks that are proven (docs/spec/proofs.md), by callgrind.

Run it as `python tests/proofs/claims/instructions.py`. The nodes are those of `nodes/vesper.proofs.json` with proven
checks and cases that need no effects.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.bench.instructions import Unusable, count, counted  # noqa: E402  # after the path is set

NODES = (
    "payment_decision_v1", "order_pricing_v1", "refund_split_v1", "discount_plan_v1", "shipping_quote_v1",
    "progressive_tax_v1", "credit_score_v1", "access_decision_v1",
)  # fmt: skip
TURNS = 10


def child() -> None:
    from tests.support.nodes import compiled_anew, worked_nodes
    from vesper.engines.direct_engine import load_documents
    from vesper.engines.tiering import ALWAYS, INTERPRETED

    saved = json.loads((ROOT / "nodes" / "vesper.proofs.json").read_text(encoding="utf-8"))["nodes"]
    ways: dict[str, tuple[Callable[[Any], Any], list[Any], int]] = {}
    for path in worked_nodes():
        entry = saved.get(path.stem)
        if path.stem not in NODES or entry is None or not any(entry["checks"].values()):
            continue
        node = compiled_anew(path)
        inputs = [dict(case.inputs) for case in node.cases if case.expect is not None]
        if not inputs or not node.node.is_pure():
            continue
        ways[f"{path.stem} nothing"] = (lambda _: None, inputs, TURNS)
        proven = [(node.semantic_hash, entry["checks"]["clauses"], entry["checks"]["calls"])]
        for name, tiering in (("interp", INTERPRETED), ("jit", ALWAYS)):
            for end, facts in (("", []), (" proven", proven)):
                ways[f"{path.stem} {name}{end}"] = (load_documents(node.ir, [], tiering, facts).entry, inputs, TURNS)
    count(ways)


def main() -> int:
    if "--child" in sys.argv:
        child()
        return 0
    try:
        found = counted(__file__)
    except Unusable as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    for name, before in sorted(found.items()):
        after = found.get(f"{name} proven")
        if after is not None:
            print(f"{name:<36} {before:10,.0f} -> {after:10,.0f}  {after / before - 1:+.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
