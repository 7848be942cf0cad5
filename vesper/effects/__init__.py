"""Performers of effects: HTTP, databases, caches, events, files, secrets, time, randomness and custom effects.

Only the Host calls them.
"""
