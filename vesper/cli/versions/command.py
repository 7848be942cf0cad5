"""`vesper versions`: names without a version, their leads, and the results of their candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vesper.cli.journal.open_journal import current_user
from vesper.cli.journal.text import document
from vesper.cli.migrate.open_store import missing_file, now_us, open_configured_store, store_dsn
from vesper.cli.options import by_option, nodes_option, store_options, style_option, why_option
from vesper.cli.settings import read_settings
from vesper.config.versions import VersionSettings
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.migration.stores.store import names_of
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.migration.candidates.overview import NameOverview
    from vesper.migration.candidates.record import DecisionKind
    from vesper.migration.stores.configured import OpenStore

_NONE = "no name has a candidate: `[versions.NAME]` in vesper.toml declares one (docs/how-to/try-a-candidate.md)"


@click.group("versions")
def command() -> None:
    """Show names with a lead and a candidate; promote or withdraw a candidate.

    Callers of a name get the outcome of its lead. The candidate follows the lead's records and performs nothing. NAME
    is a name without its version, such as payment_decision.

    Exit codes: 0 success, 1 refused, 2 usage, 3 a bug in Vesper.
    """


def compiler_of(root: Path) -> Callable[[str], Compiled | None]:
    """Return a function that compiles a version found under `root`; None for a missing or invalid file."""
    found: dict[str, Compiled | None] = {}

    def compile_version(version: str) -> Compiled | None:
        from vesper.compiler import compile_file
        from vesper.repository.locate import NodeNotFound, locate

        if version not in found:
            try:
                found[version] = compile_file(locate(version, root))[0]
            except NodeNotFound:
                found[version] = None
        return found[version]

    return compile_version


@command.command("list")
@store_options
@nodes_option
@style_option
def list_command(config: Path | None, dsn: str | None, root: Path, style: str) -> None:
    """List names with lead, candidate, compared runs and the largest groups of changed outcomes."""
    from vesper.cli.versions.text import list_lines
    from vesper.migration.candidates.overview import overview_json, read_names

    configured = read_settings(config).versions
    if not configured and missing_file(store_dsn(config, dsn)[0]) is not None:
        click.echo(document([]) if style == "json" else _NONE)
        return
    with open_configured_store(config, dsn) as opened:
        names = read_names(opened.store, configured, compiler_of(root))
    if style == "json":
        click.echo(document([overview_json(each) for each in names]))
    else:
        click.echo("\n".join(list_lines(names, now_us())) if names else _NONE)


@command.command("show")
@click.argument("name")
@store_options
@nodes_option
@style_option
def show_command(name: str, config: Path | None, dsn: str | None, root: Path, style: str) -> None:
    """Show what the candidate of NAME came to: counts, groups, examples."""
    from vesper.cli.versions.text import detail_lines
    from vesper.migration.candidates.counts import MAX_GROUPS
    from vesper.migration.candidates.overview import overview_json

    with _open_names(name, config, dsn, root, MAX_GROUPS) as (_, found):
        pass
    click.echo(document(overview_json(found)) if style == "json" else "\n".join(detail_lines(found, now_us())))


@command.command("promote")
@click.argument("name")
@store_options
@nodes_option
@why_option(is_required=True)
@by_option
@style_option
def promote_command(
    name: str, config: Path | None, dsn: str | None, root: Path, why: str, by: str | None, style: str
) -> None:
    """Let the candidate of NAME lead, in all processes within a second.

    Refused where callers would notice another interface. The decision holds for these definitions: after a change of a
    file, `lead` of vesper.toml counts again.
    """
    _decide("promoted", name, config, dsn, root, why, by, style)


@command.command("withdraw")
@click.argument("name")
@store_options
@nodes_option
@why_option(is_required=True)
@by_option
@style_option
def withdraw_command(
    name: str, config: Path | None, dsn: str | None, root: Path, why: str, by: str | None, style: str
) -> None:
    """Let the candidate of NAME neither follow nor lead, also after it was promoted."""
    _decide("withdrawn", name, config, dsn, root, why, by, style)


@command.command("resume")
@click.argument("name")
@store_options
@nodes_option
@why_option(is_required=True)
@by_option
@style_option
def resume_command(
    name: str, config: Path | None, dsn: str | None, root: Path, why: str, by: str | None, style: str
) -> None:
    """Let the candidate of NAME follow again after it was withdrawn or promoted."""
    _decide("resumed", name, config, dsn, root, why, by, style)


def _decide(
    kind: DecisionKind,
    name: str,
    config: Path | None,
    dsn: str | None,
    root: Path,
    why: str,
    by: str | None,
    style: str,
) -> None:
    from vesper.migration.candidates.decisions import Order, Refused
    from vesper.migration.router.orders import decide_candidate

    with _open_names(name, config, dsn, root) as (opened, found):
        order = Order(kind, by or current_user(), why, now_us())
        try:
            text = decide_candidate(opened, found, order, compiler_of(root))
        except Refused as problem:
            raise click.ClickException(printable(str(problem))) from None
    click.echo(document({"name": name, "decision": kind, "text": text}) if style == "json" else printable(text))


@contextmanager
def _open_names(
    name: str, config: Path | None, dsn: str | None, root: Path, with_examples: int = 0
) -> Iterator[tuple[OpenStore, NameOverview]]:
    from vesper.migration.candidates.overview import pair_of_files, read_name

    configured = read_settings(config).versions
    with open_configured_store(config, dsn) as opened:
        _check_name(name, configured, opened)
        settings = configured.get(name)
        pair = pair_of_files(settings, compiler_of(root))
        yield opened, read_name(opened.store, name, settings, pair, with_examples)


def _check_name(name: str, configured: Mapping[str, VersionSettings], opened: OpenStore) -> None:
    known = sorted({*configured, *names_of(opened.store)})
    if name not in known:
        hint = did_you_mean(name, known) or ("`vesper versions list` lists the names" if known else _NONE)
        raise click.ClickException(f"no name `{printable(name[:80])}` has a lead and a candidate; {hint}")
