"""The machines of the kernel in Python, after docs/spec/kernel.md and schemas/proto: no part of the product."""
