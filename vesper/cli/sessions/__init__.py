"""The command `vesper sessions`."""
