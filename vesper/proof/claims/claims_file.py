"""The committed results of a folder of nodes, and which of its proofs no longer hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.cache.proofs import PROVER_VERSION
from vesper.compiler import Compiled
from vesper.engines.proven_checks import MAX_PROOFS_BYTES
from vesper.proof.claims.model import CLAUSE, OPERATION, TIME_LIMIT, NodeProof, Verdict
from vesper.proof.claims.stored import proven_checks
from vesper.storage.file_access import read_regular

SAMPLE_EVERY = 10
"""One in this many unchanged nodes is proven again by a check."""
_VERSION = 1


class ProofsFileProblem(Exception):
    """The reason why a committed file cannot be used, worded to follow its name in a message."""


@dataclass(frozen=True, slots=True)
class SavedNode:
    """The saved results of one node."""

    semantic_hash: str
    clauses: tuple[tuple[str, str, str], ...]
    """Phase, text and verdict of each clause."""

    @property
    def proven(self) -> list[tuple[str, str]]:
        return [(phase, text) for phase, text, verdict in self.clauses if verdict == Verdict.PROVEN]


@dataclass(frozen=True, slots=True)
class SavedProofs:
    """The committed file: results by node id."""

    prover: int
    nodes: Mapping[str, SavedNode]


@dataclass(frozen=True, slots=True)
class LostProof:
    """A clause that was proven and is not any more."""

    node_id: str
    phase: str
    text: str
    why: str
    is_late: bool = False
    """Whether only the time limit kept it from being proven."""


def read_proofs(path: Path) -> SavedProofs:
    """Read a committed file. Raises `ProofsFileProblem`."""
    try:
        form = json.loads(read_regular(path, MAX_PROOFS_BYTES))
        if form["version"] != _VERSION:
            raise ProofsFileProblem(f"has version {form['version']}, and this Vesper reads version {_VERSION}")
        nodes = {
            node_id: SavedNode(
                each["hash"], tuple((clause["phase"], clause["text"], clause["result"]) for clause in each["clauses"])
            )
            for node_id, each in form["nodes"].items()
        }
        return SavedProofs(form["prover"], nodes)
    except FileNotFoundError:
        raise ProofsFileProblem("does not exist; `vesper prove --save` writes it") from None
    except OSError as error:
        raise ProofsFileProblem(f"cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProofsFileProblem(f"is not of `vesper prove --save` ({type(error).__name__}); save it again") from None


def proofs_text(proofs: Iterable[NodeProof], others: Mapping[str, Any] | None = None) -> str:
    """Return the text of a committed file. `others` are entries of nodes that were not proven now."""
    nodes = {**(others or {}), **{each.node_id: _entry(each) for each in proofs}}
    lines = [f"{json.dumps(name)}: {json.dumps(nodes[name], ensure_ascii=False)}" for name in sorted(nodes)]
    listed = ",\n    ".join(lines)
    return f'{{\n  "version": {_VERSION},\n  "prover": {PROVER_VERSION},\n  "nodes": {{\n    {listed}\n  }}\n}}\n'


def saved_entries(path: Path) -> dict[str, Any]:
    """Return the entries of an existing file of this prover as they are; none for another file."""
    try:
        read = read_proofs(path)
        entries: dict[str, Any] = json.loads(read_regular(path, MAX_PROOFS_BYTES))["nodes"]
        return entries if read.prover == PROVER_VERSION else {}
    except ProofsFileProblem:
        return {}


def _entry(proof: NodeProof) -> dict[str, Any]:
    _, clauses, calls = proven_checks(proof)
    listed = [
        {"phase": each.claim.group, "text": each.claim.text, "result": each.verdict.value}
        for each in proof.of_kind(CLAUSE)
    ]
    counted = {verdict.value: count for verdict, count in proof.counted([OPERATION]).items()}
    checks = {"clauses": clauses, "calls": calls}
    return {"hash": proof.semantic_hash, "clauses": listed, "operations": counted, "checks": checks}


def needs_proof(saved: SavedProofs, node: Compiled) -> bool:
    """Return whether a check proves a node again: it or the prover changed, or it is in the sample."""
    entry = saved.nodes.get(node.node.node_id)
    if entry is None or not entry.proven:
        return False
    return not _is_unchanged(saved, node) or int(node.semantic_hash[:8], 16) % SAMPLE_EVERY == 0


def _is_unchanged(saved: SavedProofs, node: Compiled) -> bool:
    entry = saved.nodes[node.node.node_id]
    return entry.semantic_hash == node.semantic_hash and saved.prover == PROVER_VERSION


def lost_proofs(
    saved: SavedProofs, nodes: Iterable[Compiled], prove: Callable[[Compiled], NodeProof], is_complete: bool
) -> list[LostProof]:
    """Return the saved proofs that no longer hold. `is_complete`: the nodes are all of the folder."""
    lost: list[LostProof] = []
    present = set()
    for each in nodes:
        present.add(each.node.node_id)
        if needs_proof(saved, each):
            found = _lost_of_node(saved.nodes[each.node.node_id], prove(each))
            # A busy machine is no reason to doubt the proof of an unchanged node.
            lost += [one for one in found if not (one.is_late and _is_unchanged(saved, each))]
    for node_id, entry in saved.nodes.items() if is_complete else ():
        if node_id not in present:
            lost += [LostProof(node_id, phase, text, "the node is gone") for phase, text in entry.proven]
    return lost


def _lost_of_node(saved: SavedNode, proof: NodeProof) -> list[LostProof]:
    now = {(each.claim.group, each.claim.text): each for each in proof.of_kind(CLAUSE)}
    lost = []
    for phase, text in saved.proven:
        found = now.get((phase, text))
        if found is None:
            lost.append(LostProof(proof.node_id, phase, text, "the node has no such clause any more"))
        elif found.verdict is not Verdict.PROVEN:
            shown = found.witness.inputs if found.witness is not None else found.reason
            is_late = found.witness is None and (found.reason or "").startswith(TIME_LIMIT)
            lost.append(LostProof(proof.node_id, phase, text, f"{found.verdict.value}: {shown}", is_late))
    return lost
