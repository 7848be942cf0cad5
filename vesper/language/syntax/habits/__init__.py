"""Spellings of other languages: the table of them, and their translation."""
