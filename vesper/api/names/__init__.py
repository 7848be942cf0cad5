"""Names without a version, as nodes."""
