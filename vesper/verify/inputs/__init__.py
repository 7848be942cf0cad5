"""Inputs for a node, drawn from its types, constraints and contracts."""
