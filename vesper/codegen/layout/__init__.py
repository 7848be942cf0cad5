"""Layout of generated Python: expressions, lines and the source table."""
