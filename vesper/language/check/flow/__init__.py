"""Check of the steps of a flow, from the AST to IR statements."""
