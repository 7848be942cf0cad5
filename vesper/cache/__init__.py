"""What was worked out before: checked and generated nodes on disk (L2), results of functions (L3), and what both count.

Nothing in here knows what a node is: names, bytes, bounds and counters. A warm start loads this package before anything
else, so it imports little, and no `pathlib`.
"""
