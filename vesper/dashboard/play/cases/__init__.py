"""Cases of a node by a click."""
