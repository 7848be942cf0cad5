"""Results of the prover in the user's private cache, and the checks among them that engines may leave out."""

from __future__ import annotations

from vesper.cache.proofs import ProvenChecks, find_proof, put_proof
from vesper.proof.claims.model import CLAUSE, OPERATION, NodeProof, Verdict, result_from_data, result_to_data

_ARITHMETIC = ("integer.add", "integer.subtract", "integer.multiply", "integer.negate", "integer.abs")
"""Operations whose check an engine may leave out (`vesper_opt::proofs`)."""


def stored_proof(node_id: str, semantic_hash: str, seconds: float) -> NodeProof | None:
    """Return the stored results of a node; None where a longer time limit may decide more."""
    data = find_proof(semantic_hash)
    if data is None:
        return None
    results = [result_from_data(each) for each in data["results"]]
    found = NodeProof(node_id, semantic_hash, results, data["seconds"], data["time_limit"], is_cached=True)
    return None if found.is_cut_short and found.time_limit < seconds else found


def store_proof(proof: NodeProof) -> None:
    """Store the results of a node."""
    put_proof(
        proof.semantic_hash,
        {
            "results": [result_to_data(each) for each in proof.results],
            "seconds": proof.seconds,
            "time_limit": proof.time_limit,
            "checks": proven_checks(proof),
        },
    )


def proven_checks(proof: NodeProof) -> ProvenChecks:
    """Return the checks that an engine may leave out: proven clauses, and integer arithmetic without any failure."""
    clauses = [each.claim.index for each in proof.of_kind(CLAUSE) if each.verdict is Verdict.PROVEN]
    operations = [each for each in proof.of_kind(OPERATION) if each.claim.text in _ARITHMETIC]
    calls = {each.claim.index for each in operations} - {
        each.claim.index for each in operations if each.verdict is not Verdict.PROVEN
    }
    return proof.semantic_hash, sorted(clauses), sorted(calls)
