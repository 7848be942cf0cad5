"""The journal: what an execution asked for and what came of it, durable before anybody acts on it."""
