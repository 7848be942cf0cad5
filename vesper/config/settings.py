"""The settings of `vesper.toml`: effects, grants, journal and the other tables.

Reading it opens nothing and imports nothing that the file does not name. Relative paths are relative to the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from vesper.config.budgets import BudgetSettings, read_budgets
from vesper.config.dashboard import DashboardSettings, read_dashboard
from vesper.config.effect_tables import NAMES, EffectSettings, read_parts
from vesper.config.engine import read_engine
from vesper.config.grants import Grant, grant_from_table
from vesper.config.keeper import KeeperSettings, read_keeper
from vesper.config.kernel import KernelSettings, read_kernel
from vesper.config.locate import MAX_BYTES, NAME
from vesper.config.migration import MigrationSettings, read_migration
from vesper.config.observe import read_observe
from vesper.config.queues import QueueSettings, read_queues
from vesper.config.result_cache import ResultSettings, read_caching
from vesper.config.serve import ServeSettings, read_serve
from vesper.config.tool_rules import ToolRule, read_tool_rules
from vesper.config.traces import TraceSettings, default_traces, read_traces
from vesper.config.versions import VersionSettings, read_versions
from vesper.effects.settings import ConfigError, Table, close_to
from vesper.engines.tiering import Tiering
from vesper.observe.settings import ObserveSettings
from vesper.storage.file_access import read_regular
from vesper.storage.trust import distrust

_PASSWORD = re.compile(r"(://[^/@\s]*:)[^/@\s]+@")
_CENTURY = 36_500 * 86_400
_UNKNOWN = "no such setting"
_REDIS = ("redis://", "rediss://", "unix://")
_POLICY_PREFIX = "vesper:policy:"
_TOP = "settings"
"""The name of the whole file in tables before its path is known; never shown."""


@dataclass(frozen=True, slots=True)
class JournalSettings:
    dsn: str
    lease: float = 30.0
    retention: float | None = None
    """Seconds that runs are kept after they ended; None is for ever."""
    key_secret: str | None = None
    """The secret that wraps the keys of sensitive runs."""
    earlier_key_secrets: tuple[str, ...] = ()
    """Former secrets: runs that they wrapped stay readable."""
    audit_key_secret: str | None = None
    max_body: int = 4 << 20


@dataclass(frozen=True, slots=True)
class RecoverySettings:
    enabled: bool = True
    every: float = 5.0
    engine: str | None = None
    """The engine that finishes runs; None is the one that began each run."""


@dataclass(frozen=True, slots=True)
class PolicySettings:
    url: str = "memory:"
    prefix: str = _POLICY_PREFIX
    on_store_failure: Literal["local", "refuse"] = "local"
    budgets: str = ""
    """Where budgets are counted; empty is the Redis of `url`, or else the database of the journal."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of a configuration."""

    path: Path | None
    folder: Path
    """The folder of relative paths."""
    grants: tuple[Grant, ...]
    journal: JournalSettings
    recovery: RecoverySettings = RecoverySettings()
    policies: PolicySettings = PolicySettings()
    workers: int = 64
    """Limit of concurrent executions of coroutines."""
    state_database: str | None = None
    modules: tuple[str, ...] = ()
    """Modules whose import registers the application's own effects."""
    parts: EffectSettings = field(default_factory=EffectSettings)
    migration: MigrationSettings | None = None
    """None is an empty table."""
    traces: TraceSettings | None = None
    """None is an empty table."""
    engine: Tiering | None = None
    """None is an empty table."""
    results: ResultSettings = field(default_factory=ResultSettings)
    """The nodes whose results are cached."""
    serve: ServeSettings = field(default_factory=ServeSettings)
    observe: ObserveSettings = field(default_factory=ObserveSettings)
    """Spans, metrics and logs."""
    dashboard: DashboardSettings = field(default_factory=DashboardSettings)
    keeper: KeeperSettings = field(default_factory=KeeperSettings)
    queues: Mapping[str, QueueSettings] = field(default_factory=dict)
    versions: Mapping[str, VersionSettings] = field(default_factory=dict)
    """Lead and candidate of names without a version."""
    tool_rules: tuple[ToolRule, ...] = ()
    """Rules for calls of tools that are granted; the first that applies decides."""
    budgets: Mapping[str, BudgetSettings] = field(default_factory=dict)
    """Limits on what requests to models take."""
    kernel: KernelSettings = field(default_factory=KernelSettings)

    def resolve_path(self, path: str) -> Path:
        return self.folder / path

    def migration_settings(self) -> MigrationSettings:
        """Return the settings of migration, with an absolute path if the store is SQLite."""
        found = self.migration or read_migration(Table("migration", {}), self.folder)
        return replace(found, store=self.dsn(found.store))

    def trace_settings(self) -> TraceSettings:
        """Return the settings of traces."""
        return self.traces or default_traces(self.folder)

    def sessions_dsn(self, dsn: str | None) -> str:
        """Return the DSN of sessions.

        By default it is a file beside the journal's, or the journal's database on a server.
        """
        if dsn is None:
            journal = self.journal.dsn
            is_file = journal.startswith("sqlite:")
            dsn = f"sqlite:{self.folder / '.vesper' / 'sessions.db'}" if is_file else journal
        return self.dsn(dsn)

    def dsn(self, dsn: str) -> str:
        """Return a DSN with an absolute path if it names a file of SQLite."""
        if dsn.startswith("sqlite:") and dsn != "sqlite::memory:":
            path = dsn.removeprefix("sqlite:")
            return f"sqlite:{self.resolve_path(path.removeprefix('//'))}"
        return dsn


def default_config(folder: Path) -> Config:
    """Return the settings that hold without a file: nothing is granted."""
    return Config(None, folder, (), JournalSettings(f"sqlite:{folder / '.vesper' / 'journal.db'}"))


def read_config(path: Path) -> Config:
    """Read the settings of a file.

    Raises `ConfigError` with the line of a mistake, and for a file that another user may have written.
    """
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(str(path), f"cannot be read: {reason}") from None
    if (distrusted := distrust(path)) is not None:
        raise ConfigError(NAME, distrusted)
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ConfigError(str(path), "this is no TOML that can be read: it is nested too deeply") from None
    except ValueError as error:  # also for a number of thousands of digits
        raise ConfigError(str(path), f"this is no TOML: {error}") from None
    try:
        return _read_values(path, values)
    except ConfigError as error:
        raise _with_line(error, path, text) from None


def config_from(values: Mapping[str, object], folder: Path) -> Config:
    """Return the settings of a mapping, for tests and for applications with another source of settings."""
    try:
        return _read_values(folder / NAME, values)
    except ConfigError as error:
        dotted = error.where.removeprefix(f"{_TOP}.")
        raise ConfigError(dotted, str(error).removeprefix(f"{error.where}: ")) from None


def _read_values(path: Path, values: Mapping[str, object]) -> Config:
    top = Table(_TOP, values)
    folder = path.parent.resolve()
    grants = values.get("grants", [])
    if not isinstance(grants, list) or not all(isinstance(each, dict) for each in grants):
        raise ConfigError(f"{_TOP}.grants", "is a list of tables: write `[[grants]]`")
    own = {
        *("grants", "journal", "recovery", "policies", "workers", "state", "effects", "migration", "traces"),
        *("engine", "cache", "serve", "observe", "dashboard", "keeper", "queues", "versions", "tool_rules"),
        *("budgets", "kernel"),
    }
    config = Config(
        path,
        folder,
        tuple(
            replace(grant_from_table(Table(f"{_TOP}.grants[{n}]", each)), where=f"grants[{n}]")
            for n, each in enumerate(grants)
        ),
        _journal(top.table("journal"), folder),
        _recovery(top.table("recovery")),
        _policies(top.table("policies")),
        top.integer("workers", 64, least=1, most=10_000),
        _state(top.table("state")),
        _modules(top.table("effects")),
        read_parts(top, folder),
        read_migration(top.table("migration"), folder),
        read_traces(top.table("traces"), folder),
        read_engine(top.table("engine")),
        read_caching(top.table("cache")),
        read_serve(top, folder),
        read_observe(top.table("observe"), folder),
        read_dashboard(top.table("dashboard")),
        read_keeper(top.table("keeper")),
        read_queues(top),
        read_versions(top),
        read_tool_rules(top.list_of_tables("tool_rules")),
        read_budgets(top),
        read_kernel(top, folder),
    )
    for name in values:
        if name not in own and name not in NAMES:
            raise ConfigError(f"{_TOP}.{name}", _UNKNOWN + close_to(name, (*sorted(own), *NAMES)))
    database = config.state_database
    if database is not None and database not in config.parts.databases:
        raise ConfigError(f"{_TOP}.state.database", f"there is no [databases.{database}]")
    topics = {f"topics.{name}": each for name, each in config.parts.topics.items()}
    for where, topic in {"events": config.parts.events, **topics}.items():
        if topic is not None and topic.database is not None and topic.database not in config.parts.databases:
            raise ConfigError(f"{_TOP}.{where}.database", f"there is no [databases.{topic.database}] for the outbox")
    _check_journal_file(config)
    return config


def _check_journal_file(config: Config) -> None:
    """Refuse settings in which the journal's file has a second use.

    Two SQLite libraries in one process would damage it.
    """
    journal = config.dsn(config.journal.dsn)
    if not journal.startswith("sqlite:"):
        return
    used = {f"databases.{name}.dsn": each.path for name, each in config.parts.databases.items() if each.path}
    used["traces.path"] = config.trace_settings().path
    for name, sessions in config.parts.sessions.items():
        dsn = config.sessions_dsn(sessions.dsn)
        if dsn.startswith("sqlite:"):
            used[f"sessions.{name}.dsn"] = Path(dsn.removeprefix("sqlite:"))
    store = config.migration_settings().store
    if store.startswith("sqlite:"):
        used["migration.store"] = Path(store.removeprefix("sqlite:"))
    file = Path(journal.removeprefix("sqlite:")).resolve()
    for where, path in used.items():
        if path.resolve() == file:
            raise ConfigError(f"{_TOP}.{where}", "this is the file of the journal, which needs one of its own")


def _journal(table: Table, folder: Path) -> JournalSettings:
    dsn = table.text("dsn", f"sqlite:{folder / '.vesper' / 'journal.db'}")
    found = JournalSettings(
        dsn,
        table.seconds("lease", 30.0),
        table.seconds("retention") if "retention" in table else None,
        table.text("key_secret") if "key_secret" in table else None,
        table.texts("earlier_key_secrets", ()),
        table.text("audit_key_secret") if "audit_key_secret" in table else None,
        table.size("max_body", 4 << 20),
    )
    table.done()
    if not dsn.startswith(("sqlite:", "postgresql://", "postgres://")):
        raise table.error("dsn", "a journal is at `sqlite:PATH` or `postgresql://…`")
    if found.earlier_key_secrets and found.key_secret is None:
        raise table.error(
            "earlier_key_secrets", "there was a key before, and now there is none: name it as `key_secret`"
        )
    if not 1 <= found.lease <= 86_400:
        raise table.error("lease", "a lease is a second at least, and a day at most")
    if not 16 << 10 <= found.max_body <= 64 << 20:
        raise table.error("max_body", "a body has 16 KiB at least and 64 MiB at most")
    if found.retention is not None and not 1 <= found.retention <= _CENTURY:
        raise table.error("retention", "runs are kept for a second at least and for 36,500 days at most, or for ever")
    return found


def _recovery(table: Table) -> RecoverySettings:
    engine = table.choice("engine", ("python", "interp", "jit")) if "engine" in table else None
    found = RecoverySettings(table.boolean("enabled", True), table.seconds("every", 5.0), engine)
    table.done()
    if not 0.05 <= found.every <= 86_400:
        raise table.error("every", "every 50ms at most, and once a day at least")
    return found


def _policies(table: Table) -> PolicySettings:
    found = PolicySettings(
        table.text("url", "memory:"),
        table.text("prefix", _POLICY_PREFIX),
        "refuse" if table.choice("on_store_failure", ("local", "refuse"), "local") == "refuse" else "local",
        table.text("budgets", ""),
    )
    table.done()
    if found.url != "memory:" and not found.url.startswith(_REDIS):
        raise table.error("url", "`memory:` or `redis://…` is expected")
    if found.budgets not in ("", "memory:", "journal") and not found.budgets.startswith(_REDIS):
        raise table.error("budgets", "`memory:`, `journal` or `redis://…` is expected")
    return found


def _state(table: Table) -> str | None:
    found = table.text("database") if "database" in table else None
    table.done()
    return found


def _modules(table: Table) -> tuple[str, ...]:
    found = table.texts("modules", ())
    table.done()
    return found


def _with_line(error: ConfigError, path: Path, text: str) -> ConfigError:
    """Return the error with the line of the file that it refers to."""
    dotted = error.where.removeprefix(f"{_TOP}.")
    message = str(error).removeprefix(f"{error.where}: ")
    lines = text.splitlines()
    line = _line_of(dotted, lines)
    if line is None:
        return ConfigError(str(path), f"{dotted}: {message}" if dotted != _TOP else message)
    shown = _PASSWORD.sub(r"\1…@", lines[line])  # messages go into logs
    if message.startswith(_UNKNOWN):  # this may be no configuration at all, such as a file of secrets behind a link
        shown = re.sub(r"=.*", "= …", shown)
    number = str(line + 1)
    caret = " " * (len(shown) - len(shown.lstrip())) + "^" * max(1, len(shown.strip().split("=")[0].strip()))
    gutter = " " * len(number)
    return ConfigError(f"{path}:{number}", f"{dotted}: {message}\n{gutter} |\n{number} | {shown}\n{gutter} | {caret}")


def _line_of(dotted: str, lines: list[str]) -> int | None:
    """Return the line of a setting, or else of its table.

    Sufficient for a message: a quoted key with dots is not found.
    """
    wanted = re.sub(r"\[(\d+)\]", r".\1", dotted).split(".")
    table: list[str] = []
    counts: dict[str, int] = {}
    best: tuple[int, int] | None = None
    for number, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith("[["):
            name = stripped.strip("[] \t").replace(" ", "")
            table = [*name.split("."), str(counts.get(name, 0))]
            counts[name] = counts.get(name, 0) + 1
            found = table
        elif stripped.startswith("["):
            table = stripped.partition("]")[0].strip("[] \t").replace('"', "").split(".")
            found = table
        elif "=" in stripped and not stripped.startswith("#"):
            found = [*table, *stripped.partition("=")[0].strip().strip("\"'").split(".")]
        else:
            continue
        if found[: len(wanted)] == wanted and len(found) > len(wanted):
            found = wanted  # a table below the wanted one, which has no line of its own
        if found == wanted[: len(found)] and (best is None or len(found) > best[0]):
            best = (len(found), number)
    return None if best is None else best[1]
