"""SQLite and PostgreSQL access shared by the journal and the migration stores."""
