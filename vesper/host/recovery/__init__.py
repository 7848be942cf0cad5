"""Takeover of runs that no process works on, and decisions about runs with an unknown outcome."""
