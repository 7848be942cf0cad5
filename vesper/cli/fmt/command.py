"""`vesper fmt`."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.load_node import find_nodes, print_diagnostics
from vesper.cli.options import NODE, nodes_option
from vesper.cli.output.progress import Progress
from vesper.compiler.reading import MAX_BYTES, NotText, read_bytes, text_of
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.format.formatter import FormatFault, format_source
from vesper.language.syntax.format.line_changes import line_changes
from vesper.storage.write_file import replace_text

STDIN = "-"


@click.command("fmt")
@click.argument("paths", type=NODE, nargs=-1)
@nodes_option
@click.option(
    "--check", is_flag=True, help="Write nothing; list files that would change, and exit with 1 if there are any."
)
@click.option("--diff", is_flag=True, help="Write nothing; print the changes as a diff.")
def command(paths: tuple[str, ...], root: Path, check: bool, diff: bool) -> None:
    """Format the text of nodes; their meaning does not change.

    PATHS are files, folders or node names, or - for standard input to standard output; by default every node under
    --nodes is formatted.
    """
    run = _Run(check, diff)
    if STDIN in paths:
        if len(paths) > 1:
            raise click.UsageError("- (standard input) cannot be combined with other paths")
        run.stdin()
    else:
        files = find_nodes(paths, root, with_libraries=True)
        if not files:
            raise click.UsageError("no .vsp files found: name files or folders, or the folder of nodes with --nodes")
        with Progress("formatting", len(files)) as progress:
            for path in progress.over(files):
                run.file(path)
        run.summary()
    sys.exit(run.exit_code)


class _Run:
    """One call of the command: its options and its counts so far."""

    def __init__(self, check: bool, diff: bool) -> None:
        self._check = check
        self._diff = diff
        self._changed = self._unchanged = self._wrong = 0
        self._fault = False

    @property
    def exit_code(self) -> int:
        if self._fault:
            return OUR_BUG
        return WRONG_INPUT if self._wrong or (self._check and self._changed) else FINE

    def stdin(self) -> None:
        shown = "<stdin>"
        texts = self._read(shown, sys.stdin.buffer.read(MAX_BYTES + 1))
        if texts is None:
            return
        before, after = texts
        if not self._check and not self._diff:
            sys.stdout.buffer.write(after.encode("utf-8"))
            sys.stdout.buffer.flush()
        elif before != after:
            self._show(shown, before, after)

    def file(self, path: Path) -> None:
        shown = path.as_posix()
        try:
            data = read_bytes(path)
        except OSError as error:
            self._report_unreadable(shown, error.strerror or type(error).__name__)
            return
        texts = self._read(shown, data)
        if texts is None:
            return
        before, after = texts
        if before == after:
            return
        if self._check or self._diff:
            self._show(shown, before, after)
            return
        try:
            replace_text(path, after)
        except OSError as error:
            self._changed -= 1
            self._wrong += 1
            click.echo(f"error: {shown} cannot be written: {error.strerror or type(error).__name__}", err=True)
        else:
            click.echo(f"formatted {shown}")

    def summary(self) -> None:
        verb = "would be formatted" if self._check or self._diff else "formatted"
        text = f"{self._changed} file{'s' if self._changed != 1 else ''} {verb}, {self._unchanged} unchanged"
        click.echo(text + (f", {self._wrong} with errors" if self._wrong else ""), err=self._diff)

    def _read(self, shown: str, data: bytes) -> tuple[str, str] | None:
        """Return the present text and the formatted one; None, after a message, where it cannot be formatted."""
        try:
            text = text_of(data)
        except NotText as reason:
            self._report_unreadable(shown, str(reason))
            return None
        return self._format(SourceFile(shown, text))

    def _format(self, source: SourceFile) -> tuple[str, str] | None:
        before = source.text
        bag = DiagnosticBag(source)
        try:
            after = format_source(bag)
        except FormatFault as fault:
            self._fault = True
            self._wrong += 1
            click.echo(f"error: {fault}; the file is unchanged", err=True)
            click.echo("This is a bug in Vesper, not in your node. Please report it with the file.", err=True)
            return None
        if after is None:
            self._wrong += 1
            print_diagnostics(bag.source, bag.sorted(), "full")
            return None
        if before == after:
            self._unchanged += 1
        else:
            self._changed += 1
        return before, after

    def _report_unreadable(self, shown: str, reason: str) -> None:
        from vesper.compiler.pipeline import unreadable

        self._wrong += 1
        _, bag = unreadable(shown, reason)
        print_diagnostics(bag.source, bag.sorted(), "full")

    def _show(self, shown: str, before: str, after: str) -> None:
        if self._check:
            click.echo(f"would format {shown}", err=self._diff)
        if self._diff:
            for line in _diff_lines(shown, before, after):
                click.echo(line, nl=False)


def _diff_lines(shown: str, before: str, after: str) -> Iterator[str]:
    """Yield a unified diff."""
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    matcher = difflib.SequenceMatcher(None, [""], [""])
    matcher.opcodes = line_changes(old, new)  # type: ignore[attr-defined]
    yield f"--- {shown}\n+++ {shown}\n"
    for group in matcher.get_grouped_opcodes():
        (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_extent(old_start, old_end)} +{_extent(new_start, new_end)} @@\n"
        for tag, i, i_end, j, j_end in group:
            yield from (_diff_line(" " if tag == "equal" else "-", line) for line in old[i:i_end])
            yield from (_diff_line("+", line) for line in new[j:j_end] if tag != "equal")


def _extent(start: int, end: int) -> str:
    size = end - start
    return f"{start + 1 if size else start}" + (f",{size}" if size != 1 else "")


def _diff_line(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
