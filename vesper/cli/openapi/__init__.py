"""`vesper openapi`."""
