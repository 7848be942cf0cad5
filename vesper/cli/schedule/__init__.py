"""`vesper schedule`."""
