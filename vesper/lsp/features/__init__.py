"""What the language server knows about a position: one module for each feature."""
