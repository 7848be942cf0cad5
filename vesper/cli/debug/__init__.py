"""`vesper debug`."""
