"""A small part of `make proof-queues`, and what its numbers in docs/proofs must say."""

from __future__ import annotations

import subprocess
import sys

from tests.proofs.queues.campaign import ROOT


def test_a_small_campaign_with_a_kill() -> None:
    command = [sys.executable, "-m", "tests.proofs.queues.campaign", "--no-write", "--stores", "sqlite"]
    command += ["--stages", "concurrency", "--runs", "40", "--keys", "2", "--kills", "1", "--processes", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
