"""Files of SQLite that several connections open at once."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from vesper.migration.stores.store import open_store


def test_the_change_to_a_write_ahead_log_waits_for_another_writer(tmp_path: Path) -> None:
    """SQLite refuses this change at once while another connection writes in the other mode."""
    path = tmp_path / "migration.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE unrelated (number INTEGER)")
    path.chmod(0o600)
    other.execute("BEGIN IMMEDIATE")
    end = threading.Timer(0.2, other.execute, ("COMMIT",))
    end.start()
    store = open_store(f"sqlite:{path}")
    try:
        assert len(store.secret()) == 16
    finally:
        end.join()
        store.close()
        other.close()
