"""Verification in worker processes, watched by their parent."""
