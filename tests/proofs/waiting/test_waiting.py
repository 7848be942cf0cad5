"""A small sample of `make proof-sleepers`; `make proof-sample` also takes one of `make proof-interrupts`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.nodes import ROOT

SIZES = ["--count", "20", "--rate", "40", "--kills", "3", "--processes", "2", "--lead", "0.5"]


def test_every_sleeping_run_is_woken_once_while_its_keepers_are_killed(tmp_path: Path) -> None:
    program = str(ROOT / "tests" / "proofs" / "waiting" / "sleepers.py")
    options = ["--store", "sqlite", "--any-lateness", "--folder", str(tmp_path / "state")]
    command = [sys.executable, program, *SIZES, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["stores"]["sqlite"]
    assert (found["runs"], found["kills"], found["problems"]) == (20, 3, [])
