"""`vesper lsp`."""
