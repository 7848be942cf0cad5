"""`vesper fmt`."""
