"""Traces: inputs, requests, completions, marks and outcome of one execution, with its node."""
