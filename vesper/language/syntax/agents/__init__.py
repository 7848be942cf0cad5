"""The `agent` section of a node: its syntax tree, and its reader."""
