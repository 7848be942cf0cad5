"""State of policies, in memory and in Redis."""
