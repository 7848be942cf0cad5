"""The engines behind one protocol."""
