"""`vesper cache`."""
