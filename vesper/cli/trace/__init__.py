"""`vesper trace`."""
