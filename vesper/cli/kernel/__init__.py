"""`vesper kernel`."""
