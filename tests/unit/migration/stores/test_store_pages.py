"""docs/how-to/choose-a-migration-store.md names existing stores and messages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from vesper.migration.stores.postgres_store import PostgresMigrationStore
from vesper.migration.stores.redis_store import RedisMigrationStore
from vesper.migration.stores.sqlite_store import BUSY_SECONDS, SqliteMigrationStore
from vesper.migration.stores.store import open_store

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/how-to/choose-a-migration-store.md").read_text(encoding="utf-8")


def test_every_store_of_the_page_can_be_opened() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    stores = [open_store(tomllib.loads(block)["migration"]["store"]) for block in blocks]
    assert [type(each) for each in stores] == [SqliteMigrationStore, PostgresMigrationStore, RedisMigrationStore]
    assert [each.name.rpartition("/")[2] for each in stores] == ["migration.db", "vesper", "0"]


def test_messages_of_the_page_exist() -> None:
    """The words of the table occur in the messages; those with a number are assembled."""
    quoted = [
        words
        for line in PAGE.splitlines()
        if line.startswith("| `")
        for words in re.findall(r"`([^`]+)`", line.split("|")[1])
    ]
    assert len(quoted) == 10
    folders = [ROOT / "vesper" / name for name in ("migration", "journal", "storage")]
    source = " ".join(each.read_text(encoding="utf-8") for folder in folders for each in folder.rglob("*.py"))
    source = re.sub(r'"\s*\n\s*f?"', "", source).replace("{busy_seconds:g}", f"{BUSY_SECONDS:g}")
    for words in quoted:
        for part in words.split("…"):
            assert part.strip(": ") in source, part
