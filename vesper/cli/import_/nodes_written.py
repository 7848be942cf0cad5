"""Output of imports: the files of new nodes, and the report of parts without a translation."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.repository.locate import SUFFIX
from vesper.storage.file_access import read_regular
from vesper.storage.write_file import create_text

out_option = click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder of the new files; by default the current one.",
)


def read_source(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a file to import.

    A file that is too large or not regular is an error of usage.
    """
    try:
        return read_regular(path, max_bytes)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise click.UsageError(f"{path.as_posix()} has more than {max_bytes} bytes") from None
        raise click.UsageError(f"{path.as_posix()} cannot be read: {error.strerror}") from None


def write_node_file(folder: Path, node_id: str, text: str) -> Path:
    """Write the file of a node; a file that exists is an error of usage."""
    path = folder / f"{node_id}{SUFFIX}"
    try:
        create_text(path, text)
    except FileExistsError as error:
        raise click.UsageError(f"{path.as_posix()} already exists; move it, or choose another --out") from error
    click.echo(f"wrote {path.as_posix()}")
    return path


def report(notes: Iterable[str], refused: Iterable[str]) -> None:
    """List notes and untranslated parts; exit with 1 if there are untranslated parts."""
    for note in notes:
        click.echo(f"note: {note}")
    listed = list(refused)
    for each in listed:
        click.echo(f"not translated: {each}", err=True)
    if listed:
        raise SystemExit(WRONG_INPUT)
