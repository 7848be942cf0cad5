"""`vesper dashboard`."""
