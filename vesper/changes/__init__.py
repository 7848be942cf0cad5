"""Differences between two versions of a node: in words, in inputs, in recorded runs."""
