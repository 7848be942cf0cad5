"""FEEL: syntax tree, tokens and parser."""
