"""Statistics of a migration: pure functions over counts."""
