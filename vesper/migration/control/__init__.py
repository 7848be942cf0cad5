"""Decisions about modes as pure functions, without a clock, a store or a thread."""
