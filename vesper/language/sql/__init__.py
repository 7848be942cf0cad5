"""SQL of nodes as tokens, by rules that checker and performers share."""
