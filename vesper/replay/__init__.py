"""Replay of a trace: repeated, changed, continued from any step, or turned into a fix."""
