"""`vesper check`."""
