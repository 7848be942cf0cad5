"""Secrets: sources, access and masking."""
