"""`vesper debug --break-on …` without NODE: breakpoints of running services."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.compiler import Compiled, compile_file
from vesper.config.settings import find_config
from vesper.debug.breakpoints import BadBreakpoint, parse_breakpoint
from vesper.debug.captures import CaptureFiles, CapturesError
from vesper.repository.locate import node_files
from vesper.trace.expressions import BadExpression, Expressions

_SHOWN = 20


def watch_services(config: Path | None, root: Path, break_on: tuple[str, ...], is_listed: bool, clear: bool) -> int:
    """Sets, lists or clears them. Services see a change within a second, and never stop for one."""
    found = config or find_config()
    armed = CaptureFiles(Path.cwd() if found is None else found.resolve().parent)
    try:
        if clear:
            armed.clear()
            click.echo("no breakpoints; what was captured stays: `vesper traces list`")
        if break_on:
            known = armed.add(_checked([text.strip() for text in break_on], root))
            where = f"the services of {armed.folder}"
            click.echo(f"{where} keep a trace of each run that meets: {', '.join(known)}")
            click.echo("`vesper debug --list` shows which; `vesper debug --clear` ends it")
        if is_listed:
            _list(armed)
    except (CapturesError, OSError) as problem:
        raise click.ClickException(str(problem)) from None
    return FINE


def _checked(texts: list[str], root: Path) -> list[str]:
    """The breakpoints, each of which means something in some node: services pass over one that does not fit a node, so
    one that fits none would wait for ever."""
    if not all(texts):
        raise click.UsageError("--break-on needs a breakpoint: contract_violation, 'input.amount > 10000', …")
    if not root.exists():
        click.echo(f"note: there is no folder `{root}`, so nobody looked whether a node has what this names", err=True)
        return texts
    nodes = _Nodes(node_files([root]))
    for text in texts:
        problem = nodes.problem_of(text)
        if problem is not None:
            click.echo(problem, err=True)
            click.echo(f"no node under `{root}` fits --break-on {text}; --nodes names another folder", err=True)
            sys.exit(WRONG_INPUT)
    return texts


class _Nodes:
    """The nodes of a folder, compiled as far as they are asked about; one with errors runs nowhere, and is left out."""

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

    def problem_of(self, text: str) -> str | None:
        """Why a breakpoint means nothing in any of them, None where it means something in one. Of all the reasons the
        one of a node that knows the names in it, where there is such a node: that is the mistake."""
        reasons = []
        for compiled in self._all():
            try:
                parse_breakpoint(text, compiled, Expressions(compiled))
                return None
            except (BadBreakpoint, BadExpression) as problem:
                reasons.append(str(problem))
        return next((each for each in reasons if "VSP1102" not in each), reasons[0] if reasons else None)


def _list(armed: CaptureFiles) -> None:
    texts = armed.breakpoints()
    click.echo("\n".join(f"breakpoint  {text}" for text in texts) or "no breakpoints")
    captured = armed.captures()
    for each in captured[-_SHOWN:]:
        at = datetime.fromtimestamp(each.at_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        click.echo(f"{at}  {each.trace_id}  {each.node_id}  {each.breakpoint}")
    if len(captured) > _SHOWN:
        click.echo(f"and {len(captured) - _SHOWN} before them")
    if captured:
        click.echo("`vesper debug --trace ID --comparative` steps through one")
