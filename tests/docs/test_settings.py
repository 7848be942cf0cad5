"""Every setting that `vesper.toml` may have stands on the page that its table is described on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.console import ROOT
from vesper.config.settings import config_from
from vesper.effects.settings import Table

PAGES = {
    "grants": "reference/settings.md",
    "effects": "reference/settings.md",
    "state": "reference/settings.md",
    "journal": "reference/settings.md",
    "recovery": "reference/settings.md",
    "policies": "reference/settings.md",
    "traces": "reference/settings.md",
    "providers": "how-to/configure-providers.md",
    "databases": "how-to/configure-databases.md",
    "caches": "how-to/configure-caches-and-events.md",
    "topics": "how-to/configure-caches-and-events.md",
    "events": "how-to/configure-caches-and-events.md",
    "files": "how-to/use-files.md",
    "secrets": "how-to/use-secrets.md",
    "cache": "how-to/use-caches.md",
    "engine": "how-to/use-machine-code.md",
    "migration": "how-to/roll-out-a-node.md",
    "observe": "how-to/observe-a-service.md",
    "serve": "how-to/serve-nodes.md",
    "dashboard": "how-to/use-the-dashboard.md",
}


def settings_there_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """What the readers of the tables ask for, by table: found by giving them one of each kind."""
    asked: dict[str, set[str]] = {}

    def noting(name: str) -> None:
        original = getattr(Table, name)

        def noted(table: Table, setting: str, *rest: Any) -> Any:
            top = table.where.removeprefix("settings").strip(".")
            parts = re.sub(r"\[[0-9]+\]", "", top).split(".")
            asked.setdefault(parts[0], set()).add(setting)
            return original(table, setting, *rest)

        monkeypatch.setattr(Table, name, noted)

    noting("_of")
    noting("__contains__")
    values: dict[str, Any] = {
        "grants": [{"nodes": ["x"]}],
        "providers": {"p": {"base_url": "https://x"}},
        "databases": {"main": {"dsn": "sqlite:x.db"}},
        "caches": {"c": {"url": "redis://h"}},
        "events": {"url": "memory:"},
        "topics": {"t": {"url": "redis://h"}},
        "files": {"f": {"path": "."}},
        "migration": {"nodes": {"x": {}}},
        "serve": {
            "tls": {"certificate": "x", "key": "x"},
            "cors": {"origins": ["*"]},
            "keys": [{"name": "x", "secret": "x"}],
            "jwt": [{"issuer": "x", "audience": "x", "jwks": "x"}],
        },
    }
    for source in ({"source": "environment"}, {"source": "file", "path": "."}, {"source": "python", "function": "a:b"}):
        config_from({**values, "secrets": source}, folder)
    top = asked.pop("")
    assert top == {*PAGES, "workers"} - {"grants"}
    return asked


def test_every_setting_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings_there_are(tmp_path, monkeypatch)
    names = {"p", "main", "c", "t", "f", "x"}
    found["providers"].remove("verify")  # looked for to be refused: nothing switches the verification of TLS off
    missing = [
        f"{table}.{setting}: {PAGES[table]}"
        for table, settings in sorted(found.items())
        for setting in sorted(settings - names)
        if not re.search(rf"(?<![\w-]){setting}(?![\w-])", (ROOT / "docs" / PAGES[table]).read_text(encoding="utf-8"))
    ]
    assert missing == []


def test_every_table_is_listed() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    for table in PAGES:
        assert re.search(rf"\[{table}[\].]", page), table
    assert "`workers`" in page
