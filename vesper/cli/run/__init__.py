"""`vesper run`."""
