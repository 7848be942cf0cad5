"""`vesper trust`."""
