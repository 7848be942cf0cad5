"""`vesper schema`."""
