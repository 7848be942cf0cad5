"""Traces: what one execution was given, asked for, computed and came to, with the node that it ran."""
