"""`vesper journal`."""
