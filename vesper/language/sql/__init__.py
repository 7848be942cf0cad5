"""SQL of nodes as tokens: what every part that handles a statement agrees on."""
