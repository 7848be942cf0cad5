"""Steps of a flow: from the AST to IR statements."""
