"""Claims about a node, and what proofs and searches found out about each (docs/spec/proofs.md)."""
