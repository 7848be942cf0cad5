"""`vesper export`."""
