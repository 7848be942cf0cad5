"""`vesper nodes`."""
