"""Statistics of a migration, as pure functions over counts."""
