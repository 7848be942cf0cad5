"""Nodes as HTTP services."""
