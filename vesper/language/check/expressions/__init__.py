"""Check of expressions, from the AST to typed IR."""
