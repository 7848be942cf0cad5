"""Readers of `vesper.toml`."""
