"""The verifier: comparison of engines on one node."""
