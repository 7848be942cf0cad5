"""Variants of existing nodes: changed, spliced and reduced documents."""
