"""Claims about a node, and the verdicts of proofs and searches on each (docs/spec/proofs.md)."""
