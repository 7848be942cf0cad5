"""A sample of the ways to grow: every engine ends them with the same limit, in bounded memory and time."""

from __future__ import annotations

import subprocess
import sys

from tests.proofs.growth.ways import WAYS

SAMPLE = ("long texts", "split texts", "many steps")


def test_growth_ends_at_a_limit() -> None:
    command = [sys.executable, "-m", "tests.proofs.growth.run", *SAMPLE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_enough_ways() -> None:
    assert len(WAYS) >= 40
