"""Find, compile and load the NODE of a command line. Prints diagnostics on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.output.diagnostics import decorate
from vesper.cli.output.terminal import columns
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Diagnostic, Severity
from vesper.language.diagnostics.render.concise import render_concise
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.repository.locate import NodeNotFound, is_library_file, locate, node_files
from vesper.storage.trust import distrust

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.engines.engine import Engine, Program
    from vesper.language.check.cases import Case

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def find_node(wanted: str, root: Path) -> Path:
    try:
        return locate(wanted, root)
    except NodeNotFound as problem:
        raise click.UsageError(str(problem)) from None


def find_lead(wanted: str, root: Path, config: Path | None) -> Path:
    """Return the file of a node to run.

    For a name that `[versions]` lists, it is the file of its lead in `vesper.toml`.
    """
    # Imported here, because `vesper check` and the listing of nodes read no settings and start faster without them.
    from vesper.cli.settings import printable_lines
    from vesper.config.locate import config_for, may_have_table
    from vesper.effects.settings import ConfigError

    path = find_node(wanted, root)
    if config is None and not may_have_table(path, "versions"):
        return path
    try:
        settings = config_for(path, config).versions.get(wanted)
    except ConfigError as problem:
        raise click.ClickException(printable_lines(str(problem))) from None
    return path if settings is None else find_node(settings.lead, root)


def find_nodes(paths: tuple[str, ...], root: Path, with_libraries: bool = False) -> list[Path]:
    """Return the files that the arguments name: files, folders or node names; without any, all nodes of the root.

    Folders also hold libraries, which do not run.
    """
    found: list[Path] = []
    try:
        for path in map(Path, paths) if paths else (root,):
            listed = node_files([path]) if path.exists() or not paths else [locate(str(path), root)]
            is_folder = not with_libraries and path.is_dir()
            found += [each for each in listed if not (is_folder and is_library_file(each))]
    except NodeNotFound as problem:
        raise click.UsageError(str(problem)) from None
    return list(dict.fromkeys(found))


def compile_or_exit(path: Path, is_run: bool = True, overlay: Path | None = None) -> Compiled:
    """Compile a node. Diagnostics end the command, and so does a file of another user where `is_run`."""
    from vesper.compiler import compile_file
    from vesper.compiler.load_cache import distrust_node

    if overlay is None:
        compiled, bag = compile_file(path)
    else:
        from vesper.compiler.overlay import compile_with_overlay

        compiled, bag = compile_with_overlay(path, overlay)
    # What nothing uses is for `vesper check` to report, not for every run.
    shown = bag.sorted() if compiled is None else [each for each in bag.sorted() if each.code is not Code.UNUSED_VALUE]
    print_diagnostics(bag.source, shown, "full")
    if compiled is None:
        sys.exit(WRONG_INPUT)
    if is_run and (reason := distrust_node(compiled)) is not None:
        raise click.ClickException(reason)
    return compiled


def cache_file(root: Path, no_cache: bool) -> Path | None:
    """Return the file of checked nodes; None without one, or where another user can have written it."""
    from vesper.compiler.node_cache import cache_path

    found = None if no_cache else cache_path(root)
    reason = None if found is None else distrust(found)
    if found is not None and found.parent.resolve() != found.parent:
        reason = f"{found.parent} is behind a symbolic link, and links are not written through"
    if reason is None:
        return found
    click.echo(f"note: nodes are checked without a cache: {reason}", err=True)
    return None


def load_or_exit(engine: Engine, compiled: Compiled) -> Program:
    from vesper.engines.engine import EngineUnavailable

    try:
        return engine.load(compiled)
    except EngineUnavailable as problem:
        raise click.UsageError(f"engine {engine.name}: {problem}") from None


def load_programs(compiled: Compiled, names: Iterable[str], is_sandboxed: bool = False) -> dict[str, Program]:
    """Load the node on each engine; an unavailable engine ends the command.

    `is_sandboxed` loads it in a confined worker, and reports what the kernel lacks.
    """
    if is_sandboxed:
        from vesper.migration.workers.sandboxed import SandboxEngine

        sandbox = SandboxEngine()
        programs = {name: load_or_exit(sandbox, compiled) for name in names}
        for each in sandbox.lacks:
            click.echo(f"warning: the sandbox is weaker here, because the kernel lacks {each}", err=True)
        return programs
    from vesper.engines.registry import ENGINES

    return {name: load_or_exit(ENGINES[name], compiled) for name in names}


def has_effects(compiled: Compiled) -> bool:
    """Return whether a run needs a Host: the node requests effects, or its runs are audited."""
    return not compiled.node.is_pure() or compiled.node.grants.audit != "none"


def find_case(compiled: Compiled, wanted: str) -> Case:
    """Return the case of this name; otherwise end the command with the names there are."""
    from vesper.language.diagnostics.suggest import did_you_mean

    for case in compiled.cases:
        if case.name == wanted:
            return case
    names = [each.name for each in compiled.cases]
    hint = did_you_mean(wanted, names) or (f"the cases are {', '.join(names)}" if names else "it has no cases")
    raise click.UsageError(f"{compiled.node.node_id} has no case `{wanted}`; {hint}")


def print_diagnostics(source: SourceFile, diagnostics: Iterable[Diagnostic], style: str) -> None:
    for diagnostic in diagnostics:
        if style == "concise":
            click.echo(render_concise(source, diagnostic), err=True)
            continue
        width = columns() if sys.stderr.isatty() else None  # a log gets complete lines
        text = decorate(render_full(source, diagnostic), _COLOURS[diagnostic.severity], width)
        click.echo(text + "\n", err=True)
