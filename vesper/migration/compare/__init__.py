"""Executions written down, whether two of them did the same, and what is kept where they did not."""
