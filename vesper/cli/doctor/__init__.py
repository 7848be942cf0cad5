"""`vesper doctor`."""
