"""Runs whose process dies at a kill point (docs/how-to/test-recovery.md)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SECONDS = 60
_PROGRAM = """
import json, sys
from pathlib import Path
import vesper
settings, node, engine, inputs = sys.argv[1:]
with vesper.Host.from_file(settings) as host:
    vesper.load(Path(node), engine=engine, host=host)(json.loads(inputs))
"""


def run_dying(settings: Path, node: Path, engine: str, die_at: str, **inputs: object) -> None:
    """Run a node in a process that dies at a kill point."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(settings), str(node), engine, json.dumps(inputs)],
        cwd=settings.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), "VESPER_DIE_AT": die_at},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode in (-signal.SIGKILL, -signal.SIGABRT), done.stderr
