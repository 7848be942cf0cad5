"""`vesper test`."""
