"""What the commands about the journal share: which journal, which execution, which time; and every problem with one of
them as a message and exit code 1."""

from __future__ import annotations

import getpass
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import click

from vesper.cli.settings import read_settings
from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.host.performers import Performers
from vesper.journal.journal import Journal, JournalError
from vesper.language.diagnostics.suggest import did_you_mean, suggestions
from vesper.values.model import printable
from vesper.values.node_id import split_node_id

_MOST_SHOWN = 10


@contextmanager
def clean_errors() -> Iterator[None]:
    """Whatever is wrong with the journal or the settings ends the command with its message."""
    try:
        yield
    except (JournalError, ConfigError) as problem:
        raise click.ClickException(str(problem)) from None


def settings_of(config: Path | None, dsn: str | None) -> Config:
    """The settings, with the journal that was named on the command line: a relative path is relative to here."""
    settings = read_settings(config)
    secrets = settings.parts.secrets
    names_code = bool(settings.modules) or (secrets is not None and secrets.function is not None)
    if names_code and str(settings.folder) not in sys.path:
        # The modules that the file names may stand beside it. The command has its own folder as the first place to
        # look, and `python -m vesper` the working directory: neither need be the one of the file. Last, so that
        # nothing there takes the place of what is installed.
        sys.path.append(str(settings.folder))
    if dsn is None:
        return settings
    if not dsn.isprintable():
        raise click.UsageError("--journal: the DSN holds signs that are no text")
    path = dsn.removeprefix("sqlite:")
    if path != dsn and not path.startswith(("/", ":")):
        dsn = f"sqlite:{Path.cwd() / path}"
    return replace(settings, journal=replace(settings.journal, dsn=dsn))


def missing_file(settings: Config) -> Path | None:
    """The file of the journal, where it does not exist: looking must not create it."""
    dsn = settings.dsn(settings.journal.dsn)
    if not dsn.startswith("sqlite:") or dsn == "sqlite::memory:":
        return None
    path = Path(dsn.removeprefix("sqlite:"))
    return None if path.exists() else path


@contextmanager
def the_journal(config: Path | None, dsn: str | None) -> Iterator[Journal]:
    """The journal to look into. It must be there; the application's own modules are not imported for it."""
    settings = settings_of(config, dsn)
    check_there(settings)
    with clean_errors():
        journal = Performers(replace(settings, modules=()), {}).open_journal()
        try:
            yield journal
        finally:
            journal.close()


def check_there(settings: Config) -> None:
    path = missing_file(settings)
    if path is not None:
        raise click.ClickException(
            f"there is no journal at {printable(str(path))}: nothing was journalled there; "
            "--config or --journal names another one"
        )


def the_execution(journal: Journal, wanted: str) -> str:
    """The id that starts so, where there is just one; otherwise the message says which there are."""
    if not wanted or not wanted.isprintable() or len(wanted) > 200:
        raise click.ClickException(f"{wanted[:40]!a} cannot be the id of an execution")
    found = list(islice(journal.executions(wanted), _MOST_SHOWN + 1))
    if wanted in found or len(found) == 1:
        return wanted if wanted in found else found[0]
    if found:
        shown = [f"  {each}" for each in found[:_MOST_SHOWN]]
        more = ["  …"] if len(found) > _MOST_SHOWN else []
        raise click.ClickException("\n".join([f"several executions start with `{wanted}`:", *shown, *more]))
    recent = {each.execution[: len(wanted)]: each.execution for each in journal.find(limit=200)}
    close = [recent[each] for each in suggestions(wanted, recent)]
    hint = f"did you mean {' or '.join(close)}?" if close else "`vesper journal list` shows those there are"
    raise click.ClickException(f"the journal has no execution `{wanted}`; {hint}")


def the_nodes(journal: Journal, wanted: str | None) -> list[str | None]:
    """The nodes that `--node` means: an id, or every version of a name. None is all of them."""
    if wanted is None:
        return [None]
    known = journal.node_ids()
    found: list[str | None] = [each for each in known if is_of_node(each, wanted)]
    if not found:
        names = {parts[0] for each in known if (parts := split_node_id(each)) is not None}
        hint = did_you_mean(wanted, [*known, *sorted(names)])
        raise click.ClickException(
            f"no run in the journal is of a node `{printable(wanted[:80])}`" + (f"; {hint}" if hint else "")
        )
    return found


def is_of_node(node_id: str, wanted: str) -> bool:
    """True where the id is the one wanted, or a version of the name wanted."""
    parts = split_node_id(node_id)
    return node_id == wanted or (parts is not None and parts[0] == wanted)


def this_user() -> str:
    """Who sits here, for what is written about who did something."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a process whose user has no name, as in many containers
        raise click.UsageError("the system does not say who you are: say it with --by") from None
    return f"{name}@{socket.gethostname()}"
