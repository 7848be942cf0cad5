"""`vesper bench`."""
