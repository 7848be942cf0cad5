"""Batches: a node over the rows of a table, on the direct engine (docs/spec/batches.md)."""
