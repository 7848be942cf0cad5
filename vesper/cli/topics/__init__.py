"""`vesper topics`."""
