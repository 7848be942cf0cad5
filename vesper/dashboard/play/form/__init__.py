"""Inputs of a node as a form."""
