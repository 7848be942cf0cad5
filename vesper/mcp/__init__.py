"""MCP servers: nodes as tools, and tools that write nodes."""
