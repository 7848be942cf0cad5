"""Drawings as SVG text, shared by pages and commands."""
