"""`vesper import`."""
