"""Differing inputs of two versions of a node: searched, shrunk, and proven absent where a solver can."""
