"""Renderers of diagnostics, one format each."""
