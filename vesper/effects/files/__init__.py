"""File effects below configured folders."""
