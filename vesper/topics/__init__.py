"""Consumers of topics: one run of an `event_handler` for each message, in order per key."""
