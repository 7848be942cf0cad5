"""Opens the journal of a command, and finds executions and nodes in it. Problems end the command with code 1."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import click

from vesper.cli.settings import read_settings
from vesper.config.code_folder import search_code_folder
from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.host.performers import Performers
from vesper.journal.journal import Journal, JournalError
from vesper.language.diagnostics.suggest import did_you_mean, suggestions
from vesper.values.model import printable
from vesper.values.node_id import is_of_node, split_node_id

_MAX_LISTED = 10


@contextmanager
def report_journal_errors() -> Iterator[None]:
    """End the command with the message of a problem of the journal or the settings."""
    try:
        yield
    except (JournalError, ConfigError) as problem:
        raise click.ClickException(str(problem)) from None


def read_journal_settings(config: Path | None, dsn: str | None) -> Config:
    """Read the settings, with the journal of `--journal`; its relative path is relative to the working directory."""
    settings = read_settings(config)
    try:
        search_code_folder(settings)
    except ConfigError as problem:
        raise click.ClickException(str(problem)) from None
    if dsn is None:
        return settings
    if not dsn.isprintable():
        raise click.UsageError("--journal: the DSN has unprintable characters")
    path = dsn.removeprefix("sqlite:")
    if path != dsn and not path.startswith(("/", ":")):
        dsn = f"sqlite:{Path.cwd() / path}"
    return replace(settings, journal=replace(settings.journal, dsn=dsn))


def missing_file(settings: Config) -> Path | None:
    """Return the path of the SQLite journal if it does not exist. Reading commands must not create it."""
    dsn = settings.dsn(settings.journal.dsn)
    if not dsn.startswith("sqlite:") or dsn == "sqlite::memory:":
        return None
    path = Path(dsn.removeprefix("sqlite:"))
    return None if path.exists() else path


@contextmanager
def open_journal(config: Path | None, dsn: str | None) -> Iterator[Journal]:
    """Open an existing journal for reading, without importing the application's own modules."""
    settings = read_journal_settings(config, dsn)
    require_journal(settings)
    with report_journal_errors():
        journal = Performers(replace(settings, modules=()), {}).open_journal()
        try:
            yield journal
        finally:
            journal.close()


def require_journal(settings: Config) -> None:
    path = missing_file(settings)
    if path is not None:
        raise click.ClickException(
            f"there is no journal at {printable(str(path))}: name another one with --config or --journal"
        )


def find_execution(journal: Journal, wanted: str) -> str:
    """Return the one id with this prefix; otherwise end the command with the candidates."""
    if not wanted or not wanted.isprintable() or len(wanted) > 200:
        raise click.ClickException(f"{wanted[:40]!a} is not an id of an execution")
    found = list(islice(journal.executions(wanted), _MAX_LISTED + 1))
    if wanted in found or len(found) == 1:
        return wanted if wanted in found else found[0]
    if found:
        shown = [f"  {each}" for each in found[:_MAX_LISTED]]
        more = ["  …"] if len(found) > _MAX_LISTED else []
        raise click.ClickException("\n".join([f"several executions start with `{wanted}`:", *shown, *more]))
    recent = {each.execution[: len(wanted)]: each.execution for each in journal.find(limit=200)}
    close = [recent[each] for each in suggestions(wanted, recent)]
    hint = f"did you mean {' or '.join(close)}?" if close else "`vesper journal list` lists the executions"
    raise click.ClickException(f"the journal has no execution `{wanted}`; {hint}")


def find_node_ids(journal: Journal, wanted: str | None) -> list[str | None]:
    """Return the ids that `--node` selects: an id, or every version of a name. None selects all."""
    if wanted is None:
        return [None]
    known = journal.node_ids()
    found: list[str | None] = [each for each in known if is_of_node(each, wanted)]
    if not found:
        names = {parts[0] for each in known if (parts := split_node_id(each)) is not None}
        hint = did_you_mean(wanted, [*known, *sorted(names)])
        raise click.ClickException(
            f"the journal has no run of a node `{printable(wanted[:80])}`" + (f"; {hint}" if hint else "")
        )
    return found


def current_user() -> str:
    """Return the current user and host, for records of manual changes."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # the user has no name, as in many containers
        raise click.UsageError("the system has no name for the current user: give one with --by") from None
    return f"{name}@{socket.gethostname()}"
