"""Executions on two engines: one leads; the other follows, is compared first, or takes over."""
