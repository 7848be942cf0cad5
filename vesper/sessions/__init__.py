"""Sessions: the durable state of conversations (docs/spec/sessions.md)."""
