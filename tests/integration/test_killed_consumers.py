"""A sample of `make proof-topics`: a consumer dies in the middle of a run, and another one finishes its messages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.nodes import ROOT
from tests.support.waiting import eventually
from tests.unit.topics.project import SETTINGS, open_project

SHORT = SETTINGS.replace("[recovery]", 'lease = "1s"\n[recovery]')


@pytest.mark.parametrize("place", ["effect.performed:3"])
def test_a_killed_consumer_loses_and_doubles_nothing(tmp_path: Path, place: str) -> None:
    with open_project(tmp_path, 'url = "outbox:"\ndatabase = "main"\nlease = "1s"', settings=SHORT) as project:
        for number in range(12):
            project.publish(number, f"k{number % 3}", divisor=0 if number == 4 else 1)
        command = [sys.executable, "-m", "tests.proofs.topics.worker", str(tmp_path), "none"]
        environment = {**os.environ, "VESPER_DIE_AT": place}
        died = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=120, check=False)
        assert died.returncode == -signal.SIGKILL, died.stderr
        assert project.waiting() > 0
        with project.consuming():
            eventually(lambda: project.waiting() == 0)
        lines = project.lines()
        assert sorted(lines) == [number for number in range(12) if number != 4]
        for key in range(3):
            assert [each for each in lines if each % 3 == key] == [n for n in range(key, 12, 3) if n != 4]
        assert [each.id for each in project.letters()] == ["m4"]
