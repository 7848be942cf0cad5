"""Sources of secrets in other systems, each imported when the settings name it."""
