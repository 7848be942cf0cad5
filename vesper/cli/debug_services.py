"""`vesper debug --break-on …` without NODE: breakpoints of running services."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from vesper.cli.exits import FINE
from vesper.debug.captures import Armed, CapturesError
from vesper.host.config import find_config

_SHOWN = 20


def watch_services(config: Path | None, break_on: tuple[str, ...], is_listed: bool, clear: bool) -> int:
    """Sets, lists or clears them. Services see a change within a second, and never stop for one."""
    if not (break_on or is_listed or clear):
        raise click.UsageError("give a NODE to debug, or --break-on for the nodes of running services")
    found = config or find_config()
    armed = Armed(Path.cwd() if found is None else found.resolve().parent)
    try:
        if clear:
            armed.clear()
            click.echo("no breakpoints; what was captured stays: `vesper traces list`")
        if break_on:
            for text in break_on:
                _checked(text)
            known = armed.add(list(break_on))
            where = f"the services of {armed.folder}"
            click.echo(f"{where} keep a trace of each run that meets: {', '.join(known)}")
            click.echo("`vesper debug --list` shows which; `vesper debug --clear` ends it")
        if is_listed:
            _list(armed)
    except (CapturesError, OSError) as problem:
        raise click.ClickException(str(problem)) from None
    return FINE


def _checked(text: str) -> None:
    """What can be said of a breakpoint without its node: that it is none at all."""
    if not text.strip():
        raise click.UsageError("--break-on needs a breakpoint: contract_violation, 'input.amount > 10000', …")
    words = text.split(":", 1)[0]
    if words in ("step", "effect", "state_transition") and not text.partition(":")[2].strip():
        raise click.UsageError(f"--break-on {text}: say which, as in `{words}:…`")


def _list(armed: Armed) -> None:
    texts = armed.breakpoints()
    click.echo("\n".join(f"breakpoint  {text}" for text in texts) or "no breakpoints")
    captured = armed.captured()
    for each in captured[-_SHOWN:]:
        at = datetime.fromtimestamp(each.at_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        click.echo(f"{at}  {each.trace_id}  {each.node_id}  {each.breakpoint}")
    if len(captured) > _SHOWN:
        click.echo(f"and {len(captured) - _SHOWN} before them")
    if captured:
        click.echo("`vesper debug --trace ID --comparative` steps through one")
