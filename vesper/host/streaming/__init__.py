"""Runs that a caller follows: their events, and runs that coroutines await."""
