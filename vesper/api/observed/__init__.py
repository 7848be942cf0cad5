"""Calls of nodes without effects that have traces or spans."""
