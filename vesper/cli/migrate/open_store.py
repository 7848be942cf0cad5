"""Opens the store of a command, and finds nodes and epochs in it. Problems end the command with code 1."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from vesper.cli.settings import printable_lines, read_settings, settings_folder
from vesper.config.migration import MigrationSettings
from vesper.config.moments import parse_duration
from vesper.effects.settings import ConfigError
from vesper.language.diagnostics.suggest import did_you_mean_node
from vesper.migration.control.state import MAX_PIN_US
from vesper.migration.router.spool import describe_unsent, spool_folder
from vesper.migration.stores.codec import BadState
from vesper.migration.stores.configured import OpenStore, short_epoch
from vesper.migration.stores.overview import newest_epochs, read_node
from vesper.migration.stores.store import NodeKey, Store, StoreError, keys_of, open_store
from vesper.values.model import printable
from vesper.values.node_id import is_of_node, split_node_id

NOTHING_YET = (
    'no node has been routed yet: {}. Load a node with `vesper.load(NAME, engine="auto")` and call it to route it'
)


class StoreUnavailable(click.ClickException):
    """The store cannot be used now."""


@contextmanager
def report_store_errors() -> Iterator[None]:
    """End the command with the message of a problem of the store or the settings."""
    try:
        yield
    except StoreError as problem:
        raise StoreUnavailable(printable_lines(str(problem))) from None
    except ConfigError as problem:
        raise click.ClickException(printable_lines(str(problem))) from None
    except BadState as problem:
        raise click.ClickException(f"the store has an unreadable state: {printable(str(problem))}") from None


def store_dsn(config: Path | None, dsn: str | None) -> tuple[str, MigrationSettings]:
    """Return the DSN of the store and the migration settings; a relative `--store` is relative to here."""
    settings = read_settings(config)
    if dsn is None:
        return settings.migration_settings().store, settings.migration_settings()
    if not dsn.isprintable():
        raise click.UsageError("--store: the DSN has unprintable characters")
    path = dsn.removeprefix("sqlite:")
    if path != dsn and not path.startswith(("/", ":")):
        dsn = f"sqlite:{Path.cwd() / path}"
    return dsn, settings.migration_settings()


def find_unreported(config: Path | None, dsn: str | None) -> list[str]:
    """Return findings that processes of this project did not report to the store; none for a named store."""
    if dsn is not None:
        return []
    return describe_unsent(spool_folder(settings_folder(config)))


def missing_file(dsn: str) -> Path | None:
    """Return the path of the SQLite store if it does not exist. Reading commands must not create it."""
    path = Path(dsn.removeprefix("sqlite:"))
    return path if dsn.startswith("sqlite:") and not path.exists() else None


@contextmanager
def open_configured_store(config: Path | None, dsn: str | None) -> Iterator[OpenStore]:
    """Open an existing store."""
    where, migration = store_dsn(config, dsn)
    absent = missing_file(where)
    if absent is not None:
        raise click.ClickException(
            NOTHING_YET.format(f"there is no store at {printable(str(absent))}")
            + "; name another store with --config or --store"
        )
    with report_store_errors():
        store = open_store(where)
        try:
            yield OpenStore(store, migration, where == migration.store)
        finally:
            store.close()


# -- which node -----------------------------------------------------------------------------------


def find_keys(store: Store, wanted: str) -> list[NodeKey]:
    """Return every epoch of a node, named by id, by file, or by a name with one version."""
    keys = keys_of(store)
    wanted = _resolve_id(wanted)
    known = sorted({key.node for key in keys})
    found = [each for each in known if each == wanted] or [each for each in known if is_of_node(each, wanted)]
    if len(found) > 1:
        raise click.ClickException(
            f"`{printable(wanted)}` has several versions in the store: name one of {', '.join(found)}"
        )
    if not found:
        names = {parts[0] for each in known if (parts := split_node_id(each)) is not None}
        hint = did_you_mean_node(wanted, [*known, *sorted(names)])
        if hint is None:
            hint = "`vesper status` lists the nodes" if known else NOTHING_YET.format("the store is empty")
        raise click.ClickException(f"the store has no node `{printable(wanted[:80])}`; {hint}")
    return [key for key in keys if key.node == found[0]]


def _resolve_id(wanted: str) -> str:
    """Return the id that a named file declares; any other name unchanged."""
    from vesper.repository.locate import SUFFIX, NodeNotFound, id_of, locate

    if not wanted.endswith(SUFFIX) and "/" not in wanted:
        return wanted
    try:
        return id_of(locate(wanted, Path()))
    except NodeNotFound as problem:
        raise click.ClickException(printable(str(problem))) from None


def find_key(opened: OpenStore, wanted: str, epoch: str | None) -> NodeKey:
    """Return the node in the epoch with this prefix; without one, in the epoch written last."""
    keys = find_keys(opened.store, wanted)
    if epoch is None:
        return newest_epochs(read_node(opened.store, key, opened.settings) for key in keys)[0].key
    matching = [key for key in keys if key.epoch.startswith(epoch)]
    if len(matching) != 1:
        count = "no epoch" if not matching else "several epochs"
        listed = ", ".join(short_epoch(key.epoch) for key in keys)
        raise click.ClickException(
            f"{count} of {printable(keys[0].node)} {'starts' if not matching else 'start'} with "
            f"`{printable(epoch[:80])}`; it has {listed}"
        )
    return matching[0]


# -- time -----------------------------------------------------------------------------------------


def now_us() -> int:
    return time.time_ns() // 1000


def read_pin_duration(_context: click.Context, _parameter: click.Parameter, text: str) -> int:
    """Read `--for` as microseconds."""
    seconds = parse_duration(text)
    if seconds is None or not 0 < seconds * 1_000_000 <= MAX_PIN_US:
        raise click.BadParameter(
            f"`{printable(text[:40])}` is not a duration up to 366 days: write `90m`, `12h` or `7d`"
        )
    return int(seconds * 1_000_000)
