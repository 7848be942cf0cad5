"""The verifier: engines compared on one node."""
