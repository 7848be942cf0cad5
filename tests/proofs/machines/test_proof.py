"""A small part of `make proof-machines`, and its recorded summary."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.proofs.machines import campaign
from tests.proofs.machines.messages import ROOT
from tests.proofs.robustness.proof import PROOFS, read_json


def test_a_campaign_counts_what_it_reaches(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.proofs.machines.campaign", "--folder", str(tmp_path), "--sequences", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert "sequences 1, " in done.stdout, done.stdout + done.stderr
    # One sequence cannot reach every transition: the campaign says so, and fails.
    assert done.returncode == 1
    assert "never reached: process: terminated to zombie" in done.stderr


@pytest.mark.filterwarnings("default:the sources of the proof")  # told, until it is run again
def test_summary_is_of_these_sources() -> None:
    proof = read_json(PROOFS / f"{campaign.NAME}.json")
    if proof is None:
        warnings.warn("the sources of the proof of machines have no summary: run `make proof-machines`", stacklevel=1)
        return
    assert proof["sequences"] == campaign.SEQUENCES
    assert proof["differences"] == 0
    if proof["source_hash"] != campaign.source_hash():
        warnings.warn("the sources of the proof of machines have changed: run `make proof-machines`", stacklevel=1)
