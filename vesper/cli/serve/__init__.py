"""`vesper serve`."""
