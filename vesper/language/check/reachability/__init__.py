"""Detection of clauses, branches and comparisons with only one possible result."""
