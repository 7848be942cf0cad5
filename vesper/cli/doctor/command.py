"""`vesper doctor`: check the installation, and a configuration against its nodes and databases."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.options import config_option, no_cache_option, nodes_option, style_option
from vesper.cli.output.terminal import style as style_text
from vesper.cli.settings import read_settings
from vesper.values.model import printable

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}


@click.command("doctor")
@nodes_option
@no_cache_option
@style_option
@config_option("to check")
def command(root: Path, no_cache: bool, style: str, config: Path | None) -> None:
    """Check the installation, and a configuration against the nodes and databases that it is for.

    Of the installation: whether the extension loads and the engines agree on a small node, the cache folder, the clock,
    packages and the terminal. Of a configuration: grants that can match nothing, targets of granted nodes that are not
    configured, topics without the outbox that a step needs, providers with their packs and missing secrets, databases
    that cannot be reached or lack the table of an outbox, and database roles with rights that no node needs, such as a
    superuser.
    Without a vesper.toml from here upwards only the installation is checked. Exits with 1 for an error; a warning alone
    exits with 0.
    """
    from vesper.cli.doctor.installation import check_installation

    found = list(check_installation())
    settings = read_settings(config)
    if settings.path is not None:
        from vesper.cli.doctor import checks
        from vesper.cli.nodes.command import decode_nodes

        nodes = decode_nodes(root, no_cache)
        found += dict.fromkeys([*checks.check_grants(settings, nodes), *checks.check_targets(settings, nodes)])
        found += [
            *checks.check_providers(settings),
            *checks.check_databases(settings),
            *checks.check_outboxes(settings),
        ]
    problems = [each for each in found if each.level != "ok"]
    if style == "json":
        click.echo(json.dumps([asdict(each) for each in problems], indent=2, ensure_ascii=False))
    else:
        for each in found:
            level = style_text(f"{each.level}:", _COLOURS[each.level])
            click.echo(f"{level} {printable(f'{each.where}: {each.text}')}")
            if each.advice:
                click.echo(printable(f"  help: {each.advice}"))
        checked = "the installation" if settings.path is None else f"the installation and {settings.path}"
        click.echo(printable(f"checked {checked}: {len(problems) or 'no'} finding{'' if len(problems) == 1 else 's'}"))
    if any(each.level == "error" for each in problems):
        raise SystemExit(WRONG_INPUT)
