"""`vesper agents`."""
