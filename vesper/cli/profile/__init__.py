"""`vesper profile`."""
