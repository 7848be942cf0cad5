"""Options that several commands share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from vesper.cli.number_ranges import FiniteRange
from vesper.cli.output.terminal import keep_lines
from vesper.config.moments import parse_duration, parse_moment
from vesper.repository.locate import FOLDER, FOLDER_VARIABLE, SUFFIX
from vesper.storage.file_access import open_regular

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])

_MAX_TEXT = 2_000
_TEXT_STYLES = ("text", "full")


def apply_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Combine option decorators into one; `--help` lists the options in the order given."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# -- files ----------------------------------------------------------------------------------------

MAX_INPUT_BYTES = 256 << 20
"""Size limit of a file of inputs, answers or commands."""


class ReadFile(click.File):
    """A regular text file of bounded size, opened for reading; `-` is standard input."""

    def __init__(self) -> None:
        super().__init__(encoding="utf-8")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str | os.PathLike) and os.fspath(value) != "-":
            _check_file(self, value, MAX_INPUT_BYTES, param, ctx)
        return super().convert(value, param, ctx)


class ReadPath(click.Path):
    """The path of an existing regular file. A device or a FIFO is refused before anything reads it."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        _check_file(self, value, None, param, ctx)
        return found


def _check_file(
    kind: click.File | click.Path,
    path: str | os.PathLike[str],
    max_bytes: int | None,
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> None:
    try:
        handle = open_regular(path)
        size = os.fstat(handle).st_size
        os.close(handle)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        kind.fail(f"'{os.fsdecode(path)}': {reason}", param, ctx)
    if max_bytes is not None and size > max_bytes:
        kind.fail(f"'{os.fsdecode(path)}': it is larger than {max_bytes:,} bytes", param, ctx)


# -- values ---------------------------------------------------------------------------------------


def read_since(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    """Read a duration before now, or a moment, as microseconds since 1970."""
    try:
        return None if text is None else parse_moment(text, time.time_ns() // 1000)
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from None


def read_age(_context: click.Context, _parameter: click.Parameter, text: str) -> float:
    """Read `--older-than` as seconds."""
    from vesper.values.model import printable

    seconds = parse_duration(text)
    if seconds is None:
        raise click.BadParameter(f"`{printable(text[:40])}` is not a duration: write `12h` or `30d`")
    return seconds


def read_words(_context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Read a text for the records, such as that of `--why` and `--by`."""
    if text is None:
        return None
    if not text.strip() or len(text) > _MAX_TEXT or not text.replace("\n", " ").isprintable():
        raise click.BadParameter(f"write 1 to {_MAX_TEXT:,} printable characters", param=parameter)
    return text.strip()


# -- nodes ----------------------------------------------------------------------------------------


class NodeName(click.types.StringParamType):
    """A node: an id, a name without its version, or a path. Shells complete the ids of the folder of nodes."""

    name = "node"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names of files, which are named after ids.

        A text with which no name begins is completed as a path.
        """
        from click.shell_completion import CompletionItem

        root = ctx.params.get("root") or Path(os.environ.get(FOLDER_VARIABLE) or FOLDER)
        stems = {path.stem for path in root.rglob(f"{incomplete}*{SUFFIX}")} if "/" not in incomplete else ()
        return [CompletionItem(each) for each in sorted(stems)] or [CompletionItem(incomplete, type="file")]


NODE = NodeName()

# -- settings ---------------------------------------------------------------------------

nodes_option = click.option(
    "--nodes",
    "root",
    type=click.Path(path_type=Path),
    default=Path(FOLDER),
    show_default=True,
    envvar=FOLDER_VARIABLE,
    show_envvar=True,
    help="Folder of the nodes.",
)
no_cache_option = click.option(
    "--no-cache", is_flag=True, envvar="VESPER_NO_CACHE", show_envvar=True, help="Check every node again."
)


def config_option(purpose: str = "") -> Callable[[Command], Command]:
    """Return the option `--config`; `purpose` is a part of its help."""
    return click.option(
        "--config",
        type=ReadPath(),
        help=f"Settings file{purpose and ' ' + purpose}; by default the nearest vesper.toml upwards.",
    )


journal_options = apply_options(
    config_option(),
    click.option("--journal", "dsn", metavar="DSN", help="Journal, instead of the one in the settings: `sqlite:PATH`."),
)
store_options = apply_options(
    config_option(),
    click.option("--store", "dsn", metavar="DSN", help="Store, instead of the one in the settings: `sqlite:PATH`."),
)

# -- inputs of a run ------------------------------------------------------------------------------

input_options = apply_options(
    click.option("--input", "-i", "pairs", multiple=True, metavar="NAME=VALUE", help="One input; repeat for more."),
    click.option("--json", "json_file", type=ReadFile(), help="All inputs as a JSON object; - reads stdin."),
)


def now_option(default: str) -> Callable[[Command], Command]:
    """Return the option `--now`; `default` describes the start time without it."""
    return click.option("--now", "start", metavar="TIMESTAMP", help=f"Start of the execution; {default} by default.")


# -- selection ------------------------------------------------------------------------------------

node_filter_option = click.option(
    "--node", type=NODE, metavar="NAME", help="Only this node: an id, or a name for all its versions."
)
since_option = click.option(
    "--since",
    "since_us",
    metavar="WHEN",
    callback=read_since,
    help="Only those since then: `2h` ago, or a moment such as 2026-11-15T12:00:00Z.",
)
limit_option = click.option(
    "--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Show only the newest N."
)
epoch_option = click.option("--epoch", metavar="HASH", help="Epoch, by a unique prefix; by default the newest one.")


def older_than_option(what: str) -> Callable[[Command], Command]:
    """Return the option `--older-than`; `what` is the beginning of its help."""
    return click.option(
        "--older-than", "seconds", required=True, metavar="AGE", callback=read_age, help=f"{what}, such as 30d."
    )


# -- changes by a person --------------------------------------------------------------------------

by_option = click.option("--by", metavar="NAME", callback=read_words, help="Who decided; by default the current user.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def why_option(is_required: bool) -> Callable[[Command], Command]:
    """Return the option `--why`, whose text is kept in the history of a node."""
    needed = "; required" if is_required else ""
    return click.option(
        "--why", required=is_required, metavar="TEXT", callback=read_words, help=f"Reason, kept in the history{needed}."
    )


# -- tests ----------------------------------------------------------------------------------------

min_coverage_option = click.option(
    "--min-coverage",
    type=FiniteRange(0, 100),
    metavar="PERCENT",
    help="Fail nodes that cover fewer of their branches.",
)

# -- output ---------------------------------------------------------------------------------------

reveal_option = click.option("--reveal", is_flag=True, help="Show the values of sensitive executions.")


def format_option(*styles: str, help: str | None = None) -> Callable[[Command], Command]:  # as click
    """Return the option `--format`; the first style is the default.

    Lines of formats for programs are not wrapped.
    """

    def keep_lines_of(_context: click.Context, _parameter: click.Parameter, style: str) -> str:
        if style not in _TEXT_STYLES:
            keep_lines()
        return style

    return click.option(
        "--format",
        "style",
        type=click.Choice(styles),
        default=styles[0],
        show_default=True,
        callback=keep_lines_of,
        help=help,
    )


style_option = format_option("text", "json")
