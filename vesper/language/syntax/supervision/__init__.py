"""Supervisors and steps to agents, from YAML to AST."""
