"""Sessions of conversations: settings and performer."""
