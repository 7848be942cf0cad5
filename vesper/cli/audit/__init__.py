"""`vesper audit`."""
