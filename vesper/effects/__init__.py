"""The effects, each performed for real: HTTP, databases, caches, events, files, secrets, time, chance, and the
application's own. Only the Host calls them."""
