"""Encodings of operations, one short function each, by the name of the operation."""

FAMILIES = ("array", "bounded", "calendar", "comparing", "decimal", "integer", "keyed", "text")
