"""`vesper compile`."""
