"""JSON Schemas of types, with the bounds that clauses put on values."""
