"""What the exit codes of `vesper` mean."""

FINE = 0
WRONG_INPUT = 1
USAGE = 2
OUR_BUG = 3
