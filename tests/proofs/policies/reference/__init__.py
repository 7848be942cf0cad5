"""The machines of policies in Python, as frozen values: the reference that those of Rust are compared with."""
