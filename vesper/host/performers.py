"""Who performs which effect: made from the configuration, each when it is first asked for, so that a run pays only for
what it uses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from vesper.effects.performer import Performer
from vesper.effects.settings import ConfigError
from vesper.host.config import Config

if TYPE_CHECKING:
    from vesper.effects.database import DatabasePerformer
    from vesper.effects.secrets import Secrets
    from vesper.journal.journal import Journal

_EFFECTS = {
    "database_query": "databases",
    "database_write": "databases",
    "http_request": "providers",
    "cache_get": "caches",
    "cache_put": "caches",
    "cache_delete": "caches",
    "event_publish": "topics",
    "secret_read": "secrets",
    "file_read": "files",
    "file_write": "files",
    "file_append": "files",
    "clock_now": "ambient",
    "random_integer": "ambient",
    "uuid_new": "ambient",
    "state_transition": "state",
    "state_read": "state",
    "custom": "custom",
}
"""The part that performs each effect."""


class Performers(Mapping[str, Performer]):
    """The performers by effect."""

    def __init__(self, config: Config, instead: Mapping[str, Performer]) -> None:
        self._config = config
        self._instead = dict(instead)
        self._made: dict[str, Performer] = {}
        self._machines: dict[str, tuple[str, str]] = {}
        self._lock = threading.RLock()
        self._secrets: Secrets | None = None
        for module in config.modules:
            try:
                import_module(module)
            except ImportError as error:
                raise ConfigError("effects.modules", f"`{module}` cannot be imported: {error}") from error

    def __getitem__(self, effect: str) -> Performer:
        found = self._instead.get(effect)
        return self._part(_EFFECTS[effect]) if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(_EFFECTS)

    def __len__(self) -> int:
        return len(_EFFECTS)

    @property
    def secrets(self) -> Secrets:
        if self._secrets is None:
            from vesper.effects.secrets import Secrets, SecretSettings

            with self._lock:
                if self._secrets is None:
                    table = self._config.tables.get("secrets")
                    self._secrets = Secrets(SecretSettings() if table is None else SecretSettings.from_table(table))
        return self._secrets

    def know_machines(self, machines: Mapping[str, str], node_id: str) -> None:
        """The initial states of machines that a node has. Two nodes that share a machine must say the same of it."""
        with self._lock:
            for name, initial in machines.items():
                before, whose = self._machines.setdefault(name, (initial, node_id))
                if before != initial:
                    raise ConfigError(
                        name,
                        f"{whose} starts this machine in `{before}`, {node_id} in `{initial}`: they cannot share it",
                    )

    def is_joined(self) -> bool:
        """True where the caller has put an open transaction of theirs under the run."""
        if "databases" not in self._made:
            return False
        from vesper.effects.database import is_joined

        return is_joined()

    def open_journal(self) -> Journal:
        from vesper.journal.open import open_journal

        settings = self._config.journal
        keys = None if settings.key_secret is None else self.secrets.text(settings.key_secret).encode()
        audit_key = None if settings.audit_key_secret is None else self.secrets.text(settings.audit_key_secret).encode()
        return open_journal(
            self._config.dsn(settings.dsn),
            lease_seconds=settings.lease,
            master_key=keys,
            audit_key=audit_key,
            max_body=settings.max_body,
        )

    def volatile_journal(self) -> str | None:
        """Why the journal may vanish; None where nothing says so."""
        from vesper.journal.open import is_volatile

        return is_volatile(self._config.dsn(self._config.journal.dsn))

    def close(self) -> None:
        with self._lock:
            for performer in self._made.values():
                performer.close()

    def _part(self, name: str) -> Performer:
        found = self._made.get(name)
        if found is None:
            with self._lock:
                found = self._made.get(name)
                if found is None:
                    found = self._made[name] = _MAKERS[name](self)
        return found

    def databases(self) -> DatabasePerformer:
        from vesper.effects.database import DatabasePerformer

        found = self._part("databases")
        assert isinstance(found, DatabasePerformer)
        return found

    def _initial(self, machine: str) -> str:
        return self._machines[machine][0]


_MAKERS: dict[str, Callable[[Performers], Performer]] = {}
