"""`vesper verify`."""
