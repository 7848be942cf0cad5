"""`vesper play`."""
