"""The tables of `vesper.toml` for effects. Each has its own reader, imported where the table is present."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vesper.effects.settings import Table

if TYPE_CHECKING:
    from vesper.effects.cache.performer import CacheSettings
    from vesper.effects.commands.settings import CommandSettings
    from vesper.effects.database.settings import DatabaseSettings
    from vesper.effects.events.settings import EventSettings
    from vesper.effects.files.settings import FileSettings
    from vesper.effects.http.settings import HttpSettings
    from vesper.effects.mcp.settings import McpSettings
    from vesper.effects.models.settings import ModelSettings
    from vesper.effects.secrets.settings import SecretSettings
    from vesper.effects.sessions.settings import SessionSettings

NAMES = (
    *("providers", "databases", "caches", "events", "topics", "files", "secrets", "sessions", "models"),
    *("commands", "mcp"),
)


@dataclass(frozen=True, slots=True)
class EffectSettings:
    """The settings of all effects."""

    providers: Mapping[str, HttpSettings] = field(default_factory=dict)
    databases: Mapping[str, DatabaseSettings] = field(default_factory=dict)
    caches: Mapping[str, CacheSettings] = field(default_factory=dict)
    events: EventSettings | None = None
    """For topics without settings of their own."""
    topics: Mapping[str, EventSettings] = field(default_factory=dict)
    files: Mapping[str, FileSettings] = field(default_factory=dict)
    secrets: SecretSettings | None = None
    commands: Mapping[str, CommandSettings] = field(default_factory=dict)
    mcp: Mapping[str, McpSettings] = field(default_factory=dict)
    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    sessions: Mapping[str, SessionSettings] = field(default_factory=dict)


def read_parts(top: Table, folder: Path) -> EffectSettings:
    """Read all tables, so that every mistake is found before anything runs. Raises `ConfigError`."""
    return EffectSettings(
        _providers(top, folder),
        _databases(top, folder),
        _caches(top),
        _events(top),
        _topics(top),
        _files(top, folder),
        _secrets(top, folder),
        _commands(top, folder),
        _mcp(top, folder),
        _models(top, folder),
        _sessions(top),
    )


def _providers(top: Table, folder: Path) -> Mapping[str, HttpSettings]:
    if "providers" not in top:
        return {}
    from vesper.effects.http.settings import HttpSettings

    tables = top.table("providers").tables()
    return {name: HttpSettings.from_table(name, each, folder) for name, each in tables.items()}


def _databases(top: Table, folder: Path) -> Mapping[str, DatabaseSettings]:
    if "databases" not in top:
        return {}
    from vesper.effects.database.settings import DatabaseSettings

    tables = top.table("databases").tables()
    return {name: DatabaseSettings.from_table(name, each, folder) for name, each in tables.items()}


def _caches(top: Table) -> Mapping[str, CacheSettings]:
    if "caches" not in top:
        return {}
    from vesper.effects.cache.performer import CacheSettings

    return {name: CacheSettings.from_table(name, each) for name, each in top.table("caches").tables().items()}


def _events(top: Table) -> EventSettings | None:
    if "events" not in top:
        return None
    from vesper.effects.events.settings import EventSettings

    return EventSettings.from_table("events", top.table("events"))


def _topics(top: Table) -> Mapping[str, EventSettings]:
    if "topics" not in top:
        return {}
    from vesper.effects.events.settings import EventSettings

    return {name: EventSettings.from_table(name, each) for name, each in top.table("topics").tables().items()}


def _files(top: Table, folder: Path) -> Mapping[str, FileSettings]:
    if "files" not in top:
        return {}
    from vesper.effects.files.settings import FileSettings

    return {name: FileSettings.from_table(name, each, folder) for name, each in top.table("files").tables().items()}


def _secrets(top: Table, folder: Path) -> SecretSettings | None:
    if "secrets" not in top:
        return None
    from vesper.effects.secrets.settings import SecretSettings

    return SecretSettings.from_table("secrets", top.table("secrets"), folder)


def _commands(top: Table, folder: Path) -> Mapping[str, CommandSettings]:
    if "commands" not in top:
        return {}
    from vesper.effects.commands.settings import CommandSettings

    tables = top.table("commands").tables()
    return {name: CommandSettings.from_table(name, each, folder) for name, each in tables.items()}


def _mcp(top: Table, folder: Path) -> Mapping[str, McpSettings]:
    if "mcp" not in top:
        return {}
    from vesper.effects.mcp.settings import McpSettings

    return {name: McpSettings.from_table(name, each, folder) for name, each in top.table("mcp").tables().items()}


def _sessions(top: Table) -> Mapping[str, SessionSettings]:
    if "sessions" not in top:
        return {}
    from vesper.effects.sessions.settings import SessionSettings

    return {name: SessionSettings.from_table(name, each) for name, each in top.table("sessions").tables().items()}


def _models(top: Table, folder: Path) -> Mapping[str, ModelSettings]:
    if "models" not in top:
        return {}
    from vesper.effects.models.settings import read_models

    return read_models(top.table("models").tables(), folder)
