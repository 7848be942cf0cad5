"""Runs over HTTP: start, show, follow, signal, answer, cancel and list (docs/spec/serving.md)."""
