"""Prove the claims of all nodes, run every refutation again, and try every proof with many inputs.

python -m tests.proofs.claims.campaign [--nodes N] [--inputs N] [--seconds S]

The work is resumable: results stay in `.proofs/claims` by semantic hash. Planted unsound proofs are the control: a
proven postcondition is negated and still claimed, and the trials must notice.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.proofs.claims.trials import contradicted, is_shown, proven_keys, with_negated_clause
from tests.proofs.robustness.proof import STATE, hash_of, read_json, whole_hash, write_json, write_proof
from tests.support.nodes import ROOT, compiled_anew, worked_nodes
from vesper.compiler import Compiled
from vesper.proof.claims.model import CLAUSE, OPERATION, NodeProof, Verdict
from vesper.proof.claims.worker import prove_within

INPUTS = 100_000
CONTROL_INPUTS = 2_000
SECONDS = 10.0
SHARE_DECIDED = 0.6
_MAX_SECONDS = 11.0
"""Time limit of a node and the start and end of its process."""


def examine(compiled: Compiled, seconds: float, inputs: int) -> dict[str, Any]:
    """Prove a node and try its results; return the counts and every fault."""
    proof = prove_within(compiled, seconds)
    found: dict[str, Any] = {
        "seconds": round(min(proof.seconds, proof.processor_seconds), 2),
        "clauses": {verdict.value: count for verdict, count in proof.counted([CLAUSE]).items()},
        "operations": {verdict.value: count for verdict, count in proof.counted([OPERATION]).items()},
        "refuted": [f"{each.claim.group} {each.claim.text}: {_shown(each)}" for each in _refuted(proof)],
        "defects": [f"{each.claim.kind} {each.claim.text}: {_shown(each)}" for each in proof.defects],
        "unknown": Counter(
            (each.reason or "")[:60] for each in proof.of_kind(CLAUSE) if each.verdict is Verdict.UNKNOWN
        ),
        "faults": [],
    }
    for each in proof.of_kind(CLAUSE, OPERATION):
        if each.witness is not None and not is_shown(compiled, each):
            found["faults"].append(f"not shown: {each.claim.text} on {each.witness.inputs}")
    proven = proven_keys(proof)
    broken = contradicted(compiled, proven, inputs, 7) if proven else {}
    found["faults"] += [f"proven and broken: {key} on {shown[:300]}" for key, shown in broken.items()]
    found["tried"] = inputs if proven else 0
    found["planted"], found["noticed"] = _control(compiled, proof)
    return found


def _refuted(proof: NodeProof) -> list[Any]:
    return [each for each in proof.of_kind(CLAUSE) if each.verdict is Verdict.REFUTED]


def _shown(result: Any) -> str:
    return str(result.reason if result.witness is None else result.witness.inputs)[:200]


def _control(compiled: Compiled, proof: NodeProof) -> tuple[int, int]:
    """Return how many unsound proofs were planted, and how many the trials noticed."""
    planted = noticed = 0
    for each in proof.of_kind(CLAUSE):
        if each.verdict is not Verdict.PROVEN or each.claim.group != "postcondition" or planted:
            continue
        changed = with_negated_clause(compiled, each.claim.number)
        if changed is not None:
            planted += 1
            noticed += bool(contradicted(changed, [each.claim.key], CONTROL_INPUTS, 7))
    return planted, noticed


def run(files: list[Path], seconds: float, inputs: int, state: Path | None) -> dict[str, Any]:
    """Examine every node that the state does not have, and return the results by node id."""
    prover = hash_of(sorted((ROOT / "vesper" / "proof").rglob("*.py")))
    known = {} if state is None else read_json(state) or {}
    results = known.get("nodes", {}) if known.get("prover") == prover else {}
    for path in files:
        compiled = compiled_anew(path)
        node_id, entry = compiled.node.node_id, f"{compiled.semantic_hash} {seconds} {inputs}"
        if results.get(node_id, {}).get("key") == entry:
            continue
        results[node_id] = {"key": entry, **examine(compiled, seconds, inputs)}
        print(node_id, json.dumps({name: results[node_id][name] for name in ("seconds", "clauses", "faults")}))
        if state is not None:
            write_json(state, {"prover": prover, "nodes": results})
    return results


def summarise(results: dict[str, Any]) -> dict[str, Any]:
    """Return the committed summary."""
    nodes = list(results.values())
    clauses: Counter[str] = sum((Counter(each["clauses"]) for each in nodes), Counter())
    operations: Counter[str] = sum((Counter(each["operations"]) for each in nodes), Counter())
    unknown: Counter[str] = sum((Counter(each["unknown"]) for each in nodes), Counter())
    total = sum(clauses.values())
    return {
        "sources": whole_hash(),
        "nodes": len(nodes),
        "clauses": dict(clauses),
        "decided": round(1 - clauses["unknown"] / total, 3) if total else 1.0,
        "bar": SHARE_DECIDED,
        "operations": dict(operations),
        "unknown_because": dict(unknown.most_common(12)),
        "refuted": {name: each["refuted"] for name, each in results.items() if each["refuted"]},
        "defects": sum(len(each["defects"]) for each in nodes),
        "inputs_tried": sum(each["tried"] for each in nodes),
        "longest_processor_seconds": max((each["seconds"] for each in nodes), default=0.0),
        "control": {name: sum(each[name] for each in nodes) for name in ("planted", "noticed")},
        "faults": [f"{name}: {fault}" for name, each in results.items() for fault in each["faults"]],
    }


def passed(summary: dict[str, Any]) -> bool:
    control = summary["control"]
    is_decided = summary["decided"] >= SHARE_DECIDED and summary["longest_processor_seconds"] <= _MAX_SECONDS
    return is_decided and not summary["faults"] and control["noticed"] == control["planted"] > 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, help="only so many nodes, evenly spread; writes no summary")
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    asked = parser.parse_args()
    files = worked_nodes()
    is_whole = asked.nodes is None
    if not is_whole:
        files = files[:: max(1, len(files) // asked.nodes)][: asked.nodes]
    state = STATE / "claims" / "state.json" if is_whole else None
    summary = summarise(run(files, asked.seconds, asked.inputs, state))
    if is_whole:
        write_proof("claims", summary)
    print(json.dumps(summary, indent=1, ensure_ascii=False))
    if not passed(summary):
        print("proof-claims: FAILED")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
