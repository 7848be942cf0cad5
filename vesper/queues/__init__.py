"""Queued runs: priorities, limits per key, debounce, dead letters and the workers of a queue."""
