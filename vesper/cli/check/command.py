"""`vesper check`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper import __version__
from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.cli.load_node import cache_file, find_nodes, print_diagnostics
from vesper.cli.options import NODE, format_option, no_cache_option, nodes_option
from vesper.cli.output.progress import Progress
from vesper.compiler.check_files import check_files
from vesper.compiler.check_result import Checked
from vesper.compiler.node_cache import NodeCache
from vesper.language.diagnostics.diagnostic import Diagnostic, Severity
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.repository.names import Names

if TYPE_CHECKING:
    from vesper.compiler.fixing import AppliedFix


@dataclass(frozen=True, slots=True)
class _CheckedFile:
    """One checked file: its remaining diagnostics, and the fixes that `--fix` applied."""

    source: SourceFile
    diagnostics: tuple[Diagnostic, ...]
    is_wrong: bool
    node_id: tuple[str, Span] | None
    applied: tuple[AppliedFix, ...] = ()
    fixable: int = 0
    http: dict[str, str] | None = None
    """Method and path of a handler without errors."""


@click.command("check")
@click.argument("paths", type=NODE, nargs=-1)
@nodes_option
@format_option(
    "full",
    "concise",
    "json",
    "sarif",
    help="Output format; json and sarif go to standard output.",
)
@click.option("--fix", is_flag=True, help="Apply unambiguous fixes, then check again.")
@no_cache_option
def command(paths: tuple[str, ...], root: Path, style: str, fix: bool, no_cache: bool) -> None:
    """Report errors in nodes; apply unambiguous fixes with --fix.

    PATHS are files, folders or node names; by default every node under --nodes is checked. Results of unchanged files
    are cached in .vesper/cache, beside the folder of nodes. `vesper explain CODE` explains a diagnostic.
    """
    files = find_nodes(paths, root, with_libraries=True)
    if not files:
        raise click.UsageError("no .vsp files found: name files or folders, or the folder of nodes with --nodes")
    all_found: list[_CheckedFile] = []
    where = cache_file(root, no_cache)
    names = Names()
    with nullcontext() if where is None else NodeCache(where) as cache, Progress("checking", len(files)) as progress:
        for checked in check_files(files, cache):
            progress.advance()
            found = _repair(checked) if fix and checked.is_wrong else _add_fixes(checked)
            found = _add_name_problems(found, names)
            if style in ("full", "concise"):
                _print_applied(found.applied)
                print_diagnostics(found.source, found.diagnostics, style)
                found = replace(found, source=SourceFile(found.source.path, ""))  # printed; frees the text
            all_found.append(found)
    if style in ("full", "concise"):
        click.echo(_summary(all_found))
    else:
        shown = _json(all_found, fix) if style == "json" else _sarif(all_found)
        click.echo(json.dumps(shown, ensure_ascii=False, indent=2))
    sys.exit(WRONG_INPUT if any(found.is_wrong for found in all_found) else FINE)


def _add_name_problems(found: _CheckedFile, names: Names) -> _CheckedFile:
    """Add problems of the id and the file name. They depend on other files, so the cache does not have them.

    A cached file without diagnostics has no text; the text is read for the excerpt.
    """
    if found.node_id is None:
        return found
    path = Path(found.source.path)
    problems = names.problems(path, *found.node_id)
    if found.http is not None:
        method, template = found.http["method"], found.http["path"]
        problems += names.route_problems(path, found.node_id[0], method, template, lambda: _read_text(path))
    if not problems:
        return found
    source = found.source if found.source.text else SourceFile(found.source.path, _read_text(path))
    diagnostics = sorted((*found.diagnostics, *problems), key=lambda each: each.primary.span.start)
    is_wrong = found.is_wrong or any(each.severity is Severity.ERROR for each in problems)
    return replace(found, source=source, diagnostics=tuple(diagnostics), is_wrong=is_wrong)


def _read_text(path: Path) -> str:
    """Return the present text of the file; an empty text where it is unreadable by now."""
    from vesper.compiler.reading import NotText, read_bytes, text_of

    try:
        return text_of(read_bytes(path))
    except (OSError, NotText):
        return ""


# -- fixes: loaded only for a file that has errors ------------------------------------------------


def _add_fixes(checked: Checked) -> _CheckedFile:
    if not checked.is_wrong:
        http = (checked.about or {}).get("http")
        return _CheckedFile(checked.source, checked.diagnostics, False, checked.node_id, http=http)
    from vesper.compiler.fixing import safe_fixes, with_proved_fixes

    diagnostics = with_proved_fixes(checked.source, checked.diagnostics)
    fixable = len(safe_fixes(diagnostics))
    return _CheckedFile(checked.source, diagnostics, checked.is_wrong, checked.node_id, fixable=fixable)


def _repair(checked: Checked) -> _CheckedFile:
    from vesper.cli.check.fixing import repair_file
    from vesper.language.syntax.declared_id import declared_id

    path = Path(checked.source.path)
    try:
        repaired = repair_file(path, checked.source, checked.diagnostics)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or type(error).__name__}") from None
    node_id = declared_id(repaired.source.text)
    return _CheckedFile(repaired.source, repaired.diagnostics, repaired.is_wrong, node_id, repaired.applied)


# -- text -----------------------------------------------------------------------------------------


def _print_applied(applied: tuple[AppliedFix, ...]) -> None:
    for each in applied:
        click.echo(f"{each.path}:{each.line}:{each.column}: fixed[{each.code}] {each.description}", err=True)


def _summary(all_found: list[_CheckedFile]) -> str:
    wrong = sum(found.is_wrong for found in all_found)
    warnings = _counts(all_found)[Severity.WARNING]
    applied = sum(len(found.applied) for found in all_found)
    fixable = sum(found.fixable for found in all_found)
    parts = [f"{_count(len(all_found), 'node')} checked", f"{wrong} with errors"]
    parts += [_count(warnings, "warning")] if warnings else []
    parts += [f"{_count(applied, 'fix', 'fixes')} applied"] if applied else []
    parts += [f"{_count(fixable, 'fix', 'fixes')} available with --fix"] if fixable else []
    return ", ".join(parts)


def _count(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _counts(all_found: list[_CheckedFile]) -> Counter[Severity]:
    return Counter(diagnostic.severity for found in all_found for diagnostic in found.diagnostics)


# -- JSON and SARIF -------------------------------------------------------------------------------


def _json(all_found: list[_CheckedFile], fix: bool) -> dict[str, Any]:
    from vesper.language.diagnostics.render.json import render_json

    counts = _counts(all_found)
    shown: dict[str, Any] = {
        "files": len(all_found),
        "errors": counts[Severity.ERROR],
        "warnings": counts[Severity.WARNING],
        "notes": counts[Severity.NOTE],
        "diagnostics": [render_json(found.source, each) for found in all_found for each in found.diagnostics],
    }
    if fix:
        shown["fixed"] = [
            {
                "code": each.code,
                "path": each.path,
                "line": each.line,
                "column": each.column,
                "description": each.description,
            }
            for found in all_found
            for each in found.applied
        ]
    return shown


def _sarif(all_found: list[_CheckedFile]) -> dict[str, Any]:
    from vesper.language.diagnostics.render.sarif import render_sarif

    return render_sarif(((found.source, each) for found in all_found for each in found.diagnostics), __version__)
