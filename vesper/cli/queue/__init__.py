"""`vesper queue`."""
