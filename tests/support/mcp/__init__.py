"""An MCP server of the official SDK for tests."""
