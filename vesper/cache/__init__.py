"""Caches: checked and generated nodes on disk (L2), results of functions (L3), and their counters.

This package knows no nodes: names, bytes, bounds and counters. A warm start imports it first, so it imports little, and
no `pathlib`.
"""
