"""`vesper migrate`."""
