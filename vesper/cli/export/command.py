"""`vesper export`."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.load_node import find_node
from vesper.cli.options import NODE, nodes_option
from vesper.importers.sheets.from_node import NotExported, tables_of_text
from vesper.importers.sheets.layout import lines_of_table
from vesper.importers.sheets.markdown import markdown_of
from vesper.importers.sheets.model import SheetTable
from vesper.storage.sheets.model import SheetProblem
from vesper.storage.sheets.xlsx_writer import write_workbook
from vesper.storage.write_file import write_bytes

_HEADER_LINES = 2


@click.group("export")
def command() -> None:
    """Write the decision tables of a node for review, as a workbook or as Markdown.

    `vesper import xlsx` reads a sheet of the workbook back without loss.
    """


@command.command("xlsx")
@click.argument("node", type=NODE)
@nodes_option
@click.option("--out", "target", type=click.Path(path_type=Path, dir_okay=False), help="By default the id and .xlsx.")
def export_xlsx(node: str, root: Path, target: Path | None) -> None:
    """Write the decision tables of NODE as an XLSX workbook, a sheet for each."""
    path, tables = _tables(node, root)
    names: dict[str, list[list[str]]] = {}
    for table in tables:
        names[table.name] = lines_of_table(table)
    try:
        content = write_workbook(names, _HEADER_LINES)
    except SheetProblem as error:
        _fail(path, str(error))
    target = target or Path(f"{path.stem}.xlsx")
    _write(target, content)


@command.command("md")
@click.argument("node", type=NODE)
@nodes_option
@click.option("--out", "target", type=click.Path(path_type=Path, dir_okay=False), help="By default standard output.")
def export_md(node: str, root: Path, target: Path | None) -> None:
    """Write the decision tables of NODE as Markdown."""
    path, tables = _tables(node, root)
    text = markdown_of(path.stem, tables)
    if target is None:
        click.echo(text, nl=False)
        return
    _write(target, text.encode("utf-8"))


def _tables(node: str, root: Path) -> tuple[Path, list[SheetTable]]:
    path = find_node(node, root)
    try:
        tables = tables_of_text(path.read_text(encoding="utf-8"), path.as_posix())
    except (NotExported, UnicodeDecodeError) as error:
        _fail(path, str(error))
    if not tables:
        _fail(path, "the node has no decision tables")
    return path, tables


def _write(target: Path, content: bytes) -> None:
    try:
        write_bytes(target, content)
    except OSError as error:
        raise click.UsageError(f"cannot write {target.as_posix()}: {error.strerror}") from None
    click.echo(f"wrote {target.as_posix()}")


def _fail(path: Path, text: str) -> NoReturn:
    click.echo(f"error: {path.as_posix()}: {text}", err=True)
    raise SystemExit(WRONG_INPUT)
