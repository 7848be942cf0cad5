"""Replay: an execution run again from its trace, changed, run on from any step, and turned into a fix."""
