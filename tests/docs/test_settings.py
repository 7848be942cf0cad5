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
    "models": "how-to/call-a-model.md",
    "budgets": "how-to/limit-costs.md",
    "sessions": "how-to/keep-conversations.md",
    "commands": "how-to/use-tools.md",
    "mcp": "how-to/use-tools.md",
    "tool_rules": "how-to/use-tools.md",
    "secrets": "how-to/use-secrets.md",
    "cache": "how-to/use-caches.md",
    "engine": "how-to/use-machine-code.md",
    "migration": "how-to/roll-out-a-node.md",
    "queues": "spec/queues.md",
    "versions": "how-to/try-a-candidate.md",
    "keeper": "how-to/wait-for-people-and-signals.md",
    "observe": "how-to/observe-a-service.md",
    "serve": "how-to/serve-nodes.md",
    "dashboard": "how-to/use-the-dashboard.md",
    "kernel": "how-to/run-a-kernel.md",
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
    client = {"client_id": "x", "client_secret": "x"}
    keys = {"access_key_id": "x", "secret_access_key": "x"}
    role = {"method": "approle", "role_id": "x", "secret_id": {"env": "x"}}
    values: dict[str, Any] = {
        "grants": [{"nodes": ["x"]}],
        "providers": {
            "p": {"base_url": "https://x", "failures": [{"status": 500, "code": "unavailable"}]},
            "q": {"base_url": "https://x", "auth": {"type": "oauth2", "token_url": "https://x", **client}},
            "r": {"base_url": "https://x", "auth": {"type": "aws_sigv4", "region": "x", "service": "x", **keys}},
        },
        "databases": {"main": {"dsn": "sqlite:x.db"}},
        "caches": {"c": {"url": "redis://h"}},
        "events": {"url": "memory:"},
        "topics": {"t": {"url": "redis://h"}},
        "files": {"f": {"path": "."}},
        "models": {
            "m": {"api": "anthropic", "model": "claude-sonnet-4-5", "key_secret": "x", "prices": "gpt-5"},
            "n": {"api": "custom", "adapter": "x", "prices": {"input": "1", "output": "1"}},
            "o": {"api": "ollama", "model": "x", "long_prices": {"above": 1, "input": "1", "output": "1"}},
        },
        "budgets": {"x": {"calls": 1}},
        "queues": {"q": {"rate": {"limit": 1, "per": "1s"}}},
        "migration": {"nodes": {"x": {}}},
        "serve": {
            "tls": {"certificate": "x", "key": "x"},
            "cors": {"origins": ["*"]},
            "keys": [{"name": "x", "secret": "x"}],
            "jwt": [{"issuer": "x", "audience": "x", "jwks": "x"}],
            "webhooks": {"x": {"extends": "stripe", "secrets": ["x"]}},
        },
        "kernel": {"tls": {"certificate": "x", "key": "x"}},
    }
    for source in (
        {"source": "environment"},
        {"source": "file", "path": "."},
        {"source": "python", "function": "a:b"},
        {"source": "vault", "url": "https://x", "auth": role},
        {"source": "vault", "url": "https://x", "auth": {"method": "kubernetes", "role": "x"}},
        {"source": "aws", "region": "x"},
        {"source": "gcp", "project": "x"},
        {"source": "azure", "url": "https://x", "tenant": "x", "client_id": "x"},
    ):
        config_from({**values, "secrets": source}, folder)
    del asked["packs/stripe"]  # the file of a pack, described with it
    top = asked.pop("")
    assert top == {*PAGES, "workers"} - {"grants"}
    return asked


def test_every_setting_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings_there_are(tmp_path, monkeypatch)
    names = {"p", "q", "r", "main", "c", "t", "f", "x", "m", "n", "o"}
    found["providers"].remove("verify")  # looked for to be refused: nothing switches the verification of TLS off
    found["models"] -= {"verify", "basic", "header"}  # the same, and `auth`, which is that of a provider
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
