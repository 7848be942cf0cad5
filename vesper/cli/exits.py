"""Exit codes of `vesper`."""

FINE = 0
WRONG_INPUT = 1
"""A node or its inputs have an error, or the output cannot be written."""
USAGE = 2
OUR_BUG = 3
