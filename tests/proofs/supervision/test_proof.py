"""A small part of `make proof-supervision`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.proofs.supervision.campaign import ROOT


def test_no_message_is_lost_or_doubled_when_workers_are_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.proofs.supervision.campaign", "--no-write", "--folder", str(tmp_path)]
    command += ["--messages", "120", "--kills", "3", "--agents", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
