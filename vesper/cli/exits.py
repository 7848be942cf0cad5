"""What the exit codes of `vesper` mean."""

FINE = 0
WRONG_INPUT = 1
"""Something is wrong with a node or its inputs; or the output cannot be written."""
USAGE = 2
OUR_BUG = 3
