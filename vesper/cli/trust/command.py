"""`vesper trust`: accept files and folders that belong to other users, or that other users can write."""

from __future__ import annotations

import json
from pathlib import Path

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.options import style_option
from vesper.storage.trust import TrustError, remove, store_path, trust, trusted_paths


@click.command("trust")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--remove", "is_removed", is_flag=True, help="Remove PATHS from the list.")
@click.option("--list", "is_listed", is_flag=True, help="List the trusted paths; also without PATHS.")
@style_option
def command(paths: tuple[Path, ...], is_removed: bool, is_listed: bool, style: str) -> None:
    """Trust settings, nodes and stores of other users; list and remove what is trusted.

    A settings file can run code, and a node runs with your grants. So Vesper refuses files that belong to another user
    than you or root, or that others can write, unless a trusted path covers them: PATHS and everything below them.

    The list is trusted.json in the configuration folder of the user. The environment variable VESPER_TRUST names
    trusted paths for one process, separated by colons; `*` stands for every path.
    """
    if is_removed and (is_listed or not paths):
        raise click.UsageError("--remove needs PATHS, and cannot be combined with --list")
    if is_listed and paths:
        raise click.UsageError("--list takes no PATHS")
    try:
        for path in paths:
            _remove(path) if is_removed else _trust(path)
        if not paths:
            _print_list(trusted_paths(), style)
    except TrustError as problem:
        raise click.ClickException(str(problem)) from None


def _trust(path: Path) -> None:
    try:
        click.echo(f"trusted: {trust(str(path))} and everything below it")
    except OSError as error:
        raise click.ClickException(f"cannot trust {path}: {error.strerror}") from None


def _remove(path: Path) -> None:
    try:
        is_gone = remove(str(path.absolute()))
    except OSError as error:
        raise click.ClickException(f"cannot change {store_path()}: {error.strerror}") from None
    if not is_gone:
        click.echo(f"error: {path} is not in the list; `vesper trust --list` shows it", err=True)
        raise click.exceptions.Exit(WRONG_INPUT)
    click.echo(f"no longer trusted: {path}")


def _print_list(known: dict[str, int], style: str) -> None:
    if style == "json":
        click.echo(json.dumps([{"path": path, "owner": owner} for path, owner in known.items()], indent=2))
        return
    if not known:
        click.echo("no path is trusted beyond your own files and those of root")
    for path, owner in known.items():
        click.echo(f"{path}  (of uid {owner})")
