"""`vesper doctor`: check a configuration against the nodes and databases that it is for."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.options import config_option, no_cache_option, nodes_option, style_option
from vesper.cli.settings import read_settings
from vesper.values.model import printable


@click.command("doctor")
@nodes_option
@no_cache_option
@style_option
@config_option("to check")
def command(root: Path, no_cache: bool, style: str, config: Path | None) -> None:
    """Check a configuration against the nodes and databases that it is for.

    Reports grants that can match nothing, databases that cannot be reached, and database roles with rights that no
    node needs, such as a superuser. Exits with 1 for an error; a warning alone exits with 0.
    """
    from vesper.cli.doctor.checks import check_databases, check_grants
    from vesper.cli.nodes.command import decode_nodes

    settings = read_settings(config)
    if settings.path is None:
        raise click.ClickException("there is no vesper.toml from here upwards: there is nothing to check")
    found = list(dict.fromkeys([*check_grants(settings, decode_nodes(root, no_cache)), *check_databases(settings)]))
    if style == "json":
        click.echo(json.dumps([asdict(each) for each in found], indent=2, ensure_ascii=False))
    else:
        for each in found:
            click.echo(printable(f"{each.level}: {each.where}: {each.text}"))
            if each.advice:
                click.echo(printable(f"  help: {each.advice}"))
        click.echo(
            f"checked {printable(str(settings.path))}: {len(found) or 'no'} finding{'' if len(found) == 1 else 's'}"
        )
    if any(each.level == "error" for each in found):
        raise SystemExit(WRONG_INPUT)
