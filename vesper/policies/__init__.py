"""Policies as pure machines, `step(state, event, now)`: no clock, no thread, no network. The Host drives them."""
