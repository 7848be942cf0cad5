"""Proofs of clauses and of equal versions, by a solver."""
