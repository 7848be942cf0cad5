"""Every process collects the same tests in the same order: workers of pytest-xdist compare their lists, and stop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def collecting(seed: str) -> subprocess.Popen[str]:
    """A pytest that lists the tests, in a process whose sets and hashes are in the order of this seed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-p", "no:xdist", "tests"],
        cwd=ROOT,
        env={**environment, "PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_names_of_tests_do_not_hang_on_the_order_of_sets() -> None:
    lists = []
    for process in [collecting(seed) for seed in ("1", "2")]:
        output, _ = process.communicate()
        assert process.returncode == 0, output[-2000:]
        lists.append([line for line in output.splitlines() if "::" in line])
    assert len(lists[0]) > 1000
    assert [pair for pair in zip(*lists, strict=True) if pair[0] != pair[1]] == []
