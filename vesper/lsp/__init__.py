"""`vesper lsp`: a language server for nodes, on pygls."""
