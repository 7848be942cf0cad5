"""Clauses, branches and comparisons with only one possible result."""
