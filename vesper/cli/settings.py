"""Settings of a command: the file of `--config`, or the nearest `vesper.toml` upwards."""

from __future__ import annotations

from pathlib import Path

import click

from vesper.config.locate import config_for, nearest_config
from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.values.model import printable


def read_settings(option: Path | None) -> Config:
    """Return the settings of `--config` or of the nearest file; the defaults where there is no file.

    `path` of the result is None where the defaults apply. A file that cannot be read ends the command.
    """
    try:
        return config_for(explicit=option)
    except ConfigError as problem:
        raise click.ClickException(printable_lines(str(problem))) from None


def settings_folder(option: Path | None) -> Path:
    """Return the folder of the settings file without reading the file; the working directory without one."""
    found = nearest_config(explicit=option)
    return Path.cwd() if found is None else found.parent.resolve()


def printable_lines(text: str) -> str:
    """Escape control characters; keep line ends."""
    return "\n".join(map(printable, text.splitlines()))
