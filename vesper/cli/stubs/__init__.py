"""`vesper stubs`."""
