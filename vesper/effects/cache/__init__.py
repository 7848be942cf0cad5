"""Cache effects, in memory and in Redis."""
