"""Stores of modes, evidence and divergences, and the transaction that applies a batch to them."""
