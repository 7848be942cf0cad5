"""What the pages know of a service: its metrics."""

from __future__ import annotations

import os
from pathlib import Path

from vesper.config.settings import Config
from vesper.observe.metrics import Sample, snapshot, use_directory
from vesper.serve.supervisor import VARIABLE


def read_metrics(config: Config) -> list[Sample] | None:
    """Return the metrics of all processes; None where they share no folder. Raises `OSError`."""
    named = config.observe.directory or os.environ.get(VARIABLE)
    if not named or not Path(named).is_dir():
        return None
    use_directory(Path(named))
    return snapshot()
