"""Expected restarts, written by hand and independent of the machine: every strategy × place × window.

A row names the children `a b c` of one supervisor with `max_restarts: 2` within 10 s. `crashes` are seconds and names;
`restarted` has the agents that each crash restarts, and `FAILED` where it fails the supervisor.
"""

FAILED = "failed"

STRATEGY_BY_PLACE = {
    ("one_for_one", "a"): "a",
    ("one_for_one", "b"): "b",
    ("one_for_one", "c"): "c",
    ("one_for_all", "a"): "abc",
    ("one_for_all", "b"): "abc",
    ("one_for_all", "c"): "abc",
    ("rest_for_one", "a"): "abc",
    ("rest_for_one", "b"): "bc",
    ("rest_for_one", "c"): "c",
    ("restart_all", "a"): "abc",
    ("restart_all", "b"): "abc",
    ("restart_all", "c"): "abc",
}
"""The agents that one crash restarts, by strategy and place."""

WINDOWS = [
    # seconds of the crashes, and the crash that fails the supervisor (None: none does)
    ((0,), None),
    ((0, 1), None),
    ((0, 1, 2), 2),
    ((0, 9, 9.999), 2),
    ((0, 9, 10), None),
    ((0, 9, 10.001), None),
    ((0, 5, 11, 16), None),
    ((0, 5, 11, 16, 20.5), 4),
    ((0, 20, 40, 60, 80), None),
    ((0, 0, 0), 2),
]
"""A crash counts for 10 s: at its age of exactly 10 s it no longer does. The third one within 10 s is one too many."""

STOPPED_SIBLING = {
    # a child that ended by itself before, and whether a crash of its sibling begins it anew
    ("one_for_one", "normal"): False,
    ("one_for_all", "normal"): False,
    ("rest_for_one", "normal"): False,
    ("restart_all", "normal"): True,
    ("one_for_one", "held"): False,
    ("one_for_all", "held"): False,
    ("rest_for_one", "held"): False,
    ("restart_all", "held"): False,
}
"""`held`: a person stopped it."""
