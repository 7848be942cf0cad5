"""`vesper cache`: contents and counters of the caches, and emptying them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.options import config_option, style_option

if TYPE_CHECKING:
    from vesper.config.result_cache import ResultSettings

_TITLES = {
    "l1": "L1, machine code (of this process)",
    "l2": "L2, nodes on disk (all processes)",
    "l3": "L3, results",
}
_level = click.option(
    "--level",
    "levels",
    type=click.Choice(("l1", "l2", "l3")),
    multiple=True,
    help="Only this level; repeat for more. All by default.",
)
_config = config_option("with [cache.results]")


@click.group("cache")
def command() -> None:
    """Show what the caches hold and how often they hit; empty them.

    L1 holds machine code, in the memory of a process. L2 holds checked and generated nodes, in a folder of the user
    (VESPER_CACHE names another folder, or `off`). L3 holds results of the nodes under [cache.results] of vesper.toml,
    in memory and in Redis. Emptying a cache loses nothing: its contents are computed again.
    """


@command.command()
@_level
@_config
@style_option
def stats(levels: tuple[str, ...], config: Path | None, style: str) -> None:
    """Show entries, bytes, hits and evictions of each level."""
    from vesper.api.caches import cache_stats

    found = {name: each for name, each in cache_stats(_result_settings(config)).items() if not levels or name in levels}
    if style == "json":
        click.echo(json.dumps(found, indent=2))
        return
    for number, (name, each) in enumerate(found.items()):
        if number:
            click.echo()
        click.echo(_TITLES[name])
        for key, value in each.items():
            click.echo(f"  {key.replace('_', ' '):<16} {_format_value(key, value)}")


@command.command()
@_level
@_config
@style_option
def clear(levels: tuple[str, ...], config: Path | None, style: str) -> None:
    """Empty the caches, except the memory of other processes."""
    from vesper.api.caches import LEVELS, clear_caches
    from vesper.cache.results import SharedAway
    from vesper.compiler.node_cache import cache_path
    from vesper.repository.locate import FOLDER

    try:
        removed = clear_caches(levels or LEVELS, _result_settings(config))
    except SharedAway as why:
        click.echo(f"error: the shared results were not removed: {why}", err=True)
        raise SystemExit(WRONG_INPUT) from None
    if not levels or "l2" in levels:
        checked = cache_path(Path(FOLDER))
        if checked is not None and checked.is_file():
            checked.unlink()
            removed["l2"] += 1
    if style == "json":
        click.echo(json.dumps(removed))
        return
    for name, count in removed.items():
        click.echo(f"{_TITLES[name]}: {count:,} removed")


def _format_value(key: str, value: Any) -> str:
    if key.endswith("bytes") and isinstance(value, int):
        return f"{value:,} ({value / (1 << 20):.1f} MiB)"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _result_settings(config: Path | None) -> ResultSettings | None:
    from vesper.cli.settings import read_settings

    settings = read_settings(config)
    return None if settings.path is None else settings.results
