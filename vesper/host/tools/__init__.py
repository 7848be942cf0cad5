"""Rules, hooks and confirmation of tools."""
