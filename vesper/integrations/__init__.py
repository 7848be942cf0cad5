"""Bridges to libraries that an application already uses; each module imports its library when it is imported."""
