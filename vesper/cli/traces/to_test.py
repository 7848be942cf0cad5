"""`vesper traces to-test`."""

from __future__ import annotations

from pathlib import Path

import click

from vesper.cli.options import journal_options
from vesper.cli.traces.open_traces import open_configured_traces
from vesper.storage.write_file import create_text


@click.command("to-test")
@click.argument("trace")
@journal_options
@click.option(
    "--as",
    "form",
    type=click.Choice(["case", "pytest", "conformance"]),
    default="case",
    show_default=True,
    help="A case of the node, a pytest with a file of answers, or a case on which engines must agree.",
)
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="New file; by default standard output."
)
@click.option("--name", metavar="TEXT", help="Name of the case.")
@click.option("--reveal", is_flag=True, help="Write sensitive values as they were.")
def to_test_command(
    trace: str,
    config: Path | None,
    dsn: str | None,
    form: str,
    output: Path | None,
    name: str | None,
    reveal: bool,
) -> None:
    """Write a trace as a test that needs neither network nor journal.

    Sensitive inputs, and the sensitive parts of answers, become placeholders of the same shape; the expected outcome
    is what the node returns on them. `--reveal` writes them as they were; a conformance case of a sensitive trace
    requires it. A pytest consists of two files: `-o tests/test_charge.py` also writes
    `tests/test_charge.yaml`.
    """
    from vesper.replay.to_test import case_text, conformance_text, pytest_text

    if form == "pytest" and (output is None or output.suffix != ".py"):
        raise click.UsageError("a pytest consists of two files: name the first with -o tests/test_NAME.py")
    with open_configured_traces(config, dsn) as traces:
        found = traces.find(trace)
        if form == "conformance":
            files = {output: conformance_text(found, reveal)}
        elif form == "case":
            files = {output: case_text(found, name, reveals=reveal)}
        else:
            assert output is not None
            beside = output.with_suffix(".yaml")
            cases = case_text(found, name, reveals=reveal)
            files = {beside: cases, output: pytest_text(found, cases, beside.name)}
    for path in files:
        if path is not None and path.exists():  # both files are written, or neither
            raise click.ClickException(f"{path} already exists and is not overwritten")
    for path, text in files.items():
        if path is None:
            click.echo(text, nl=False)
            continue
        try:
            create_text(path, text, is_private=True)
        except FileExistsError:
            raise click.ClickException(f"{path} already exists and is not overwritten") from None
        except OSError as error:
            raise click.ClickException(f"{path} cannot be written: {error.strerror or error}") from None
        click.echo(f"wrote {path}")
