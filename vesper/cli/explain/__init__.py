"""`vesper explain`."""
