"""`vesper schema`."""

from __future__ import annotations

from pathlib import Path

import click

from vesper.repository.editor_schema import SCHEMA_FILE, schema_text
from vesper.storage.write_file import write_bytes


@click.command("schema")
@click.option("--write", "is_written", is_flag=True, help=f"Write {SCHEMA_FILE} in the current folder instead.")
def command(is_written: bool) -> None:
    """Print the JSON Schema of nodes, for editors.

    An editor with a YAML language server uses it for nodes whose first line names it. `vesper new` writes that line
    where the project has the file.
    """
    text = schema_text()
    if not is_written:
        click.echo(text, nl=False)
        return
    try:
        write_bytes(Path(SCHEMA_FILE), text.encode("utf-8"))
    except OSError as error:
        raise click.UsageError(f"cannot write {SCHEMA_FILE}: {error.strerror}") from None
    click.echo(f"wrote {SCHEMA_FILE}; nodes that `vesper new` writes refer to it")
