"""`vesper demo`."""
