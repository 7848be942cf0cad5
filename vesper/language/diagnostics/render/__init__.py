"""Renderers of diagnostics, one module per format."""
