"""Solver of conditions on inputs: contracts that drawn inputs must meet, and branches that they must reach."""
