"""Relations between a node and rewritten forms of it that must have the same outcomes."""
