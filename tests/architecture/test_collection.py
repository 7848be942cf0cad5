"""Every process collects the same tests in the same order: workers of pytest-xdist compare their lists, and stop.

That comparison is the test, made whenever tests are run by several workers: a name that hangs on the order of a set is
another one in another process, as long as each of them has hashes of its own. What is here keeps that so.
"""

from __future__ import annotations

import os
import sys


def test_every_process_has_hashes_of_its_own() -> None:
    assert os.environ.get("PYTHONHASHSEED", "random") == "random", "workers could no longer tell"
    assert sys.flags.hash_randomization
