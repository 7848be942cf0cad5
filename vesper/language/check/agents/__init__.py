"""Lowering of a node of type `agent` to an ordinary flow."""
