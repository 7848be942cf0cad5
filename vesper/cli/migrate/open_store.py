"""What the commands about migration share: which store, which node, who says so; and every problem with one of them as
a message and exit code 1."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from vesper.cli.journal.open_journal import is_of_node, read_words, seconds_of
from vesper.config.migration import MigrationSettings
from vesper.config.settings import Config, default_config, find_config, read_config
from vesper.effects.settings import ConfigError, close_to
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.migration.control.modes import THRESHOLDS, Mode
from vesper.migration.control.state import MAX_PIN_US, Settings
from vesper.migration.router.spool import describe_unsent
from vesper.migration.stores.codec import BadState
from vesper.migration.stores.overview import newest, read_node
from vesper.migration.stores.store import WHOLE, NodeKey, Store, StoreError, keys_of, open_store
from vesper.values.model import printable
from vesper.values.node_id import split_node_id

_Command = TypeVar("_Command", bound=Callable[..., Any])
_SHORT = 12
"""Signs of an epoch that are shown."""
NOTHING_YET = (
    "nothing has been routed yet: {}. A node is routed where it is loaded with "
    '`vesper.load(NAME, engine="auto")` and called'
)


def store_options(command: _Command) -> _Command:
    """`--config` and `--store`."""
    for option in (
        click.option("--store", "dsn", metavar="DSN", help="Another store than that of the settings: `sqlite:PATH`, …"),
        click.option(
            "--config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="The vesper.toml; the nearest upwards, unless said.",
        ),
    ):
        command = option(command)
    return command


epoch_option = click.option(
    "--epoch", metavar="HASH", help="Another epoch than the newest: as much of its beginning as is unique."
)


def why_option(is_required: bool) -> Callable[[_Command], _Command]:
    needed = "; needed" if is_required else ""
    return click.option(
        "--why", required=is_required, metavar="TEXT", callback=read_words, help=f"Kept in the history{needed}."
    )


@dataclass(frozen=True, slots=True)
class Opened:
    """A store, and how the configuration wants nodes moved."""

    store: Store
    migration: MigrationSettings
    is_configured: bool
    """Whether it is the store of the configuration. Of any other, nobody here knows what it asks for."""

    @property
    def settings(self) -> Settings:
        return Settings(frozenset(Mode(each) for each in self.migration.approvals))

    @property
    def rules(self) -> Settings:
        """By what an order is decided. A node may rise when it is told something; where it is not known for which modes
        a person is asked, only those who run it raise it, for they know."""
        return self.settings if self.is_configured else Settings(frozenset(THRESHOLDS))

    def highest(self, node: str) -> Mode | None:
        """The highest mode that the configuration allows; None where it says nothing, or is of another store."""
        named = self.migration.of(node).max_mode if self.is_configured else None
        return None if named is None else Mode(named)

    def unknown_names(self) -> list[str]:
        """What the configuration says of nodes that nobody has routed: often a name that was misspelt, and a limit on a
        node that is none."""
        ids = sorted({each.node for each in keys_of(self.store) if each != WHOLE})
        names = {split[0] for split in map(split_node_id, ids) if split is not None}
        return [
            f"[migration.nodes.{name}]: no node of this name was ever routed here{close_to(name, ids)}"
            for name in self.migration.nodes
            if name not in ids and name not in names
        ]


class StoreTrouble(click.ClickException):
    """The store cannot be used, or not now."""


@contextmanager
def clean_errors() -> Iterator[None]:
    """Whatever is wrong with the store or the settings ends the command with its message."""
    try:
        yield
    except StoreError as problem:
        raise StoreTrouble(printable_lines(str(problem))) from None
    except ConfigError as problem:
        raise click.ClickException(printable_lines(str(problem))) from None
    except BadState as problem:
        raise click.ClickException(f"the store holds a state that cannot be read: {printable(str(problem))}") from None


def printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.splitlines()))


def store_dsn(config: Path | None, dsn: str | None) -> tuple[str, MigrationSettings]:
    """The DSN of the store, with a path from here where it was named on the command line; and the settings."""
    found = config or find_config()
    with clean_errors():
        settings: Config = default_config(Path.cwd()) if found is None else read_config(found)
    if dsn is None:
        return settings.migrating().store, settings.migrating()
    if not dsn.isprintable():
        raise click.UsageError("--store: the DSN holds signs that are no text")
    path = dsn.removeprefix("sqlite:")
    if path != dsn and not path.startswith(("/", ":")):
        dsn = f"sqlite:{Path.cwd() / path}"
    return dsn, settings.migrating()


def found_and_untold(config: Path | None, dsn: str | None) -> list[str]:
    """What processes of this project left behind without telling the store; of a store that is named instead, nobody
    here knows which those are."""
    if dsn is not None:
        return []
    found = config or find_config()
    return describe_unsent((Path.cwd() if found is None else found.parent) / ".vesper" / "migration")


def missing_file(dsn: str) -> Path | None:
    """The file of the store, where it does not exist: looking must not create it."""
    path = Path(dsn.removeprefix("sqlite:"))
    return path if dsn.startswith("sqlite:") and not path.exists() else None


@contextmanager
def the_store(config: Path | None, dsn: str | None) -> Iterator[Opened]:
    """The store to look into. It must be there."""
    where, migration = store_dsn(config, dsn)
    absent = missing_file(where)
    if absent is not None:
        raise click.ClickException(
            NOTHING_YET.format(f"there is no store at {printable(str(absent))}")
            + "; --config or --store names another store"
        )
    with clean_errors():
        store = open_store(where)
        try:
            yield Opened(store, migration, where == migration.store)
        finally:
            store.close()


# -- which node -----------------------------------------------------------------------------------


def the_keys(store: Store, wanted: str) -> list[NodeKey]:
    """Every epoch of a node that is named by its id, by its file, or by its name where there is one version of it."""
    keys = keys_of(store)
    wanted = _id_in_file(wanted)
    known = sorted({key.node for key in keys})
    found = [each for each in known if each == wanted] or [each for each in known if is_of_node(each, wanted)]
    if len(found) > 1:
        raise click.ClickException(f"`{printable(wanted)}` has several versions here: name one of {', '.join(found)}")
    if not found:
        names = {parts[0] for each in known if (parts := split_node_id(each)) is not None}
        hint = did_you_mean(wanted, [*known, *sorted(names)])
        if hint is None:
            hint = "`vesper status` lists those there are" if known else NOTHING_YET.format("the store is empty")
        raise click.ClickException(f"the store knows no node `{printable(wanted[:80])}`; {hint}")
    return [key for key in keys if key.node == found[0]]


def _id_in_file(wanted: str) -> str:
    """The id that a file declares, where a node is named by its file; anything else as it is. A store knows ids."""
    from vesper.repository.locate import SUFFIX, NodeNotFound, id_of, locate

    if not wanted.endswith(SUFFIX) and "/" not in wanted:
        return wanted
    try:
        return id_of(locate(wanted, Path()))
    except NodeNotFound as problem:
        raise click.ClickException(printable(str(problem))) from None


def the_key(opened: Opened, wanted: str, epoch: str | None) -> NodeKey:
    """The node in the epoch that starts so; in the one that was written last, where none is named."""
    keys = the_keys(opened.store, wanted)
    if epoch is None:
        return newest(read_node(opened.store, key, opened.settings) for key in keys)[0].key
    matching = [key for key in keys if key.epoch.startswith(epoch)]
    if len(matching) != 1:
        said = "no epoch" if not matching else "several epochs"
        listed = ", ".join(short_epoch(key.epoch) for key in keys)
        raise click.ClickException(
            f"{said} of {printable(keys[0].node)} {'starts' if not matching else 'start'} with "
            f"`{printable(epoch[:80])}`; it has {listed}"
        )
    return matching[0]


def short_epoch(epoch: str) -> str:
    return printable(epoch[:_SHORT])


# -- time -----------------------------------------------------------------------------------------


def now_us() -> int:
    return time.time_ns() // 1000


def read_length(_context: click.Context, _parameter: click.Parameter, text: str) -> int:
    """`--for`, in microseconds."""
    seconds = seconds_of(text)
    if seconds is None or not 0 < seconds * 1_000_000 <= MAX_PIN_US:
        raise click.BadParameter(
            f"`{printable(text[:40])}` is no length of time up to 366 days: write `90m`, `12h` or `7d`"
        )
    return int(seconds * 1_000_000)
