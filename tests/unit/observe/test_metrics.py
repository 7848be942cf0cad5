"""Run the tests of `counted.py` in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_metrics_of_a_fresh_process() -> None:
    """A process has room for some thousand series; the tests before this one in a worker may have used it."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, str(Path(__file__).with_name("counted.py"))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
