"""Every process collects the same tests in the same order, as pytest-xdist requires.

Workers of xdist compare their lists. A test name that depends on the order of a set differs between processes with
different hash seeds; the test here keeps the seeds different.
"""

from __future__ import annotations

import os
import sys


def test_every_process_has_hashes_of_its_own() -> None:
    assert os.environ.get("PYTHONHASHSEED", "random") == "random", "workers could no longer tell"
    assert sys.flags.hash_randomization
