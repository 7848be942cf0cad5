"""`vesper new`."""
