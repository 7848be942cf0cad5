"""Data of a service for the pages: its migration store, its spool and its metrics."""

from __future__ import annotations

import os
from pathlib import Path

from vesper.config.settings import Config
from vesper.dashboard.stores import Stores
from vesper.migration.router.spool import describe_unsent, spool_folder
from vesper.migration.stores.configured import OpenStore
from vesper.observe.metrics import Sample, snapshot, use_directory
from vesper.serve.supervisor import VARIABLE


def open_configured(stores: Stores) -> OpenStore:
    """Return the migration store with its settings. Raises `Unavailable`."""
    return OpenStore(stores.migration, stores.config.migration_settings(), is_configured=True)


def unsent_findings(stores: Stores) -> list[str]:
    """Return warnings about findings that the migration store does not have yet."""
    return describe_unsent(spool_folder(stores.config.folder))


def read_metrics(config: Config) -> list[Sample] | None:
    """Return the metrics of all processes; None where they share no folder. Raises `OSError`."""
    named = config.observe.directory or os.environ.get(VARIABLE)
    if not named or not Path(named).is_dir():
        return None
    use_directory(Path(named))
    return snapshot()
