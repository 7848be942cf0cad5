"""`vesper divergences`."""
