"""Every setting in the pages about these effects can be used as it is written there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from vesper.effects.cache.performer import CacheSettings
from vesper.effects.events.settings import EventSettings
from vesper.effects.files.settings import FileSettings
from vesper.effects.secrets.settings import SecretSettings
from vesper.effects.settings import Table

PAGES = Path(__file__).parents[4] / "docs" / "how-to"
_BLOCK = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["configure-caches-and-events", "use-files", "use-secrets"])
def test_settings_of_a_page(page: str, tmp_path: Path) -> None:
    readers: dict[str, Callable[[str, Table], object]] = {
        "caches": CacheSettings.from_table,
        "topics": EventSettings.from_table,
        "files": FileSettings.from_table,
        "events": EventSettings.from_table,
        "secrets": SecretSettings.from_table,
    }
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8").replace("/srv/shop/reports", str(tmp_path))
    blocks = _BLOCK.findall(text)
    assert blocks
    for block in blocks:
        for kind, values in tomllib.loads(block).items():
            if kind in ("events", "secrets"):
                readers[kind](kind, Table(f"vesper.toml: {kind}", values))
                continue
            for name, table in values.items():
                readers[kind](name, Table(f"vesper.toml: {kind}.{name}", table))
