"""`vesper replay`."""
