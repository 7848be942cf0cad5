"""Database effects on SQLite and PostgreSQL."""
