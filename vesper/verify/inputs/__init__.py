"""Generated inputs of a node, from its types, constraints and contracts."""
