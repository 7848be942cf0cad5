"""`vesper status`."""
