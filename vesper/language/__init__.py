"""The language: reading, checking and describing nodes."""
