"""`vesper debug --break-on …` without NODE: breakpoints of running services."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.cli.settings import settings_folder
from vesper.compiler import Compiled, compile_file
from vesper.debug.breakpoints import BadBreakpoint, parse_breakpoint
from vesper.repository.locate import node_files
from vesper.trace.armed_breakpoints import Armed, CapturesError
from vesper.trace.expressions import BadExpression, Expressions

_MAX_LISTED = 20


def watch_services(config: Path | None, root: Path, break_on: tuple[str, ...], is_listed: bool, clear: bool) -> int:
    """Set, list or clear breakpoints. Services read a change within a second, and never stop."""
    armed = Armed(settings_folder(config))
    try:
        if clear:
            armed.clear()
            click.echo("breakpoints removed; captured traces stay: `vesper traces list`")
        if break_on:
            known = armed.add(_check_texts([text.strip() for text in break_on], root))
            where = f"the services of {armed.folder}"
            click.echo(f"{where} keep a trace of each run that matches: {', '.join(known)}")
            click.echo("`vesper debug --list` lists the traces; `vesper debug --clear` removes the breakpoints")
        if is_listed:
            _print_breakpoints(armed)
    except (CapturesError, OSError) as problem:
        raise click.ClickException(str(problem)) from None
    return FINE


def _check_texts(texts: list[str], root: Path) -> list[str]:
    """Return the breakpoints after checking that each fits some node; services ignore one that fits none."""
    if not all(texts):
        raise click.UsageError("--break-on needs a breakpoint: contract_violation, 'input.amount > 10000', …")
    if not root.exists():
        click.echo(f"note: there is no folder `{root}`, so the names in the breakpoint were not checked", err=True)
        return texts
    nodes = _NodeFolder(node_files([root]))
    for text in texts:
        problem = nodes.find_problem(text)
        if problem is not None:
            click.echo(problem, err=True)
            click.echo(f"no node under `{root}` fits --break-on {text}; --nodes names another folder", err=True)
            sys.exit(WRONG_INPUT)
    return texts


class _NodeFolder:
    """The nodes of a folder, compiled on demand, without those that have errors."""

    def __init__(self, paths: list[Path]) -> None:
        self._waiting = iter(paths)
        self._compiled: list[Compiled] = []

    def _all(self) -> Iterator[Compiled]:
        yield from self._compiled
        for path in self._waiting:
            compiled, _ = compile_file(path)
            if compiled is not None:
                self._compiled.append(compiled)
                yield compiled

    def find_problem(self, text: str) -> str | None:
        """Return why no node accepts the breakpoint; None where one does. Prefers a node that has its names."""
        reasons = []
        for compiled in self._all():
            try:
                parse_breakpoint(text, compiled, Expressions(compiled))
                return None
            except (BadBreakpoint, BadExpression) as problem:
                reasons.append(str(problem))
        return next((each for each in reasons if "VSP1102" not in each), reasons[0] if reasons else None)


def _print_breakpoints(armed: Armed) -> None:
    texts = armed.breakpoints()
    click.echo("\n".join(f"breakpoint  {text}" for text in texts) or "no breakpoints")
    captured = armed.captured()
    for each in captured[-_MAX_LISTED:]:
        at = datetime.fromtimestamp(each.at_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        click.echo(f"{at}  {each.trace_id}  {each.node_id}  {each.breakpoint}")
    if len(captured) > _MAX_LISTED:
        click.echo(f"and {len(captured) - _MAX_LISTED} earlier ones")
    if captured:
        click.echo("`vesper debug --trace ID --comparative` steps through one")
