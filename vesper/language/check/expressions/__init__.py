"""Expressions: from the AST to typed IR."""
