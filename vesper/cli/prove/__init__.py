"""`vesper prove`."""
