"""The journal: the requests of a run and their completions, durable before any of them is used."""
