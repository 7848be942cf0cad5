"""The connection of a command to the kernel: options, settings, errors."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.cli.options import ReadPath, apply_options, config_option
from vesper.cli.settings import printable_lines, read_settings
from vesper.kernel.tokens import read_token
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.kernel import Client


@dataclass(frozen=True, slots=True)
class Connection:
    """The options of a connection."""

    address: str | None
    tls: bool
    ca: Path | None
    certificate: Path | None
    key: Path | None
    config: Path | None


def connection_options(command: Any) -> Any:
    """Add the options of a connection, which the command gets as `connection`."""

    @functools.wraps(command)
    def connected(*arguments: Any, **options: Any) -> Any:
        given = {name: options.pop(name) for name in Connection.__slots__}
        return command(*arguments, connection=Connection(**given), **options)

    return apply_options(
        click.option("--address", metavar="HOST:PORT", help="The kernel; by default that of the settings."),
        click.option("--tls", is_flag=True, help="Verify the kernel by the certificates of the system."),
        click.option("--ca", type=ReadPath(), help="Verify it by this file, in PEM form."),
        click.option("--certificate", type=ReadPath(), help="Show it this certificate, in PEM form."),
        click.option("--key", type=ReadPath(), help="The key of the certificate."),
        config_option(),
    )(connected)


@contextmanager
def connect(connection: Connection) -> Iterator[Client]:
    """Yield a client. An error of the kernel ends the command with its message."""
    settings = read_settings(connection.config).kernel
    try:
        from vesper.kernel import Client

        with Client(
            connection.address or f"{settings.host}:{settings.port}",
            token=read_token(),
            tls=connection.tls,
            ca=connection.ca,
            certificate=connection.certificate,
            key=connection.key,
        ) as client:
            yield client
    except ModuleNotFoundError as missing:
        raise click.ClickException(str(missing)) from None
    except (VesperError, ValueError, OSError) as problem:
        raise click.ClickException(printable_lines(str(problem))) from None
