"""`vesper traces`."""
