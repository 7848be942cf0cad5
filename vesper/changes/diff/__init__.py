"""Differences between two versions of a node, in words: what was added, removed, renamed, moved and changed."""
