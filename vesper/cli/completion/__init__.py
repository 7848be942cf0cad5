"""`vesper completion`."""
