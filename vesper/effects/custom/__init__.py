"""Effects that an application registers in Python."""
