"""`vesper mcp`."""
