"""`vesper versions`."""
