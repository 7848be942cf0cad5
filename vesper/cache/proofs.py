"""Results of proofs on disk, by semantic hash.

They are private to the user, and authenticated like cached nodes.

Engines read the proven checks of a node here (docs/spec/proofs.md); the prover writes them. A result is valid for the
sources of Vesper that made it and for the prover of this version.
"""

from __future__ import annotations

import marshal
import os
from typing import Any, TypeAlias

from vesper.cache.entries import Entries, digest, entries
from vesper.cache.fingerprint import compiler_digest, stamps

PROVER_VERSION = 1
"""Version of what a proof means. Raised where older proofs, also those of committed files, no longer count."""

ProvenChecks: TypeAlias = tuple[str, list[int], list[int]]
"""Semantic hash of a node, expressions of its proven clauses, and its calls that are proven not to fail."""


def find_proof(semantic_hash: str) -> dict[str, Any] | None:
    """Return the stored result of a node; None where there is none."""
    cache = entries()
    found = None if cache is None else cache.find(_name(semantic_hash))
    return None if found is None else marshal.loads(found)  # the MAC was right: this user wrote it  # noqa: S302


def put_proof(semantic_hash: str, proof: dict[str, Any]) -> None:
    """Store the result of a node, with `checks` for engines, where there is a cache."""
    cache: Entries | None = entries()
    if cache is not None:
        cache.put(_name(semantic_hash), marshal.dumps(proof))


def _name(semantic_hash: str) -> str:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sources = repr((PROVER_VERSION, stamps(f"{package}/proof"))).encode()
    return digest(b"proof", compiler_digest(), sources, semantic_hash.encode("ascii")).hex()
