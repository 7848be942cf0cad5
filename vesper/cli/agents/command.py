"""`vesper agents`: trees of agents, messages to them, and commands to stop and start them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.journal.open_journal import current_user, report_journal_errors
from vesper.cli.journal.text import document, table
from vesper.cli.options import (
    apply_options,
    by_option,
    config_option,
    input_options,
    nodes_option,
    style_option,
    why_option,
)
from vesper.cli.output.value_lines import value_lines
from vesper.cli.settings import read_settings
from vesper.host.finishing import quiet_host
from vesper.journal.moments import number
from vesper.supervision.overview import AgentLine, agent_lines, start_agents, stop_agents
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.host.host import Host

address_argument = click.argument("address")
change_options = apply_options(
    address_argument, nodes_option, config_option(), by_option, why_option(is_required=False)
)


@click.group("agents")
def command() -> None:
    """Show agents and their mailboxes; send messages; stop and start agents.

    ADDRESS is that of an agent or a supervisor, as `vesper agents tree` shows it: `support/writers/a`.

    Exit codes: 0 success, 1 refused or failed, 2 usage, 3 a bug in Vesper.
    """


@command.command("tree")
@click.argument("address", required=False)
@config_option()
@style_option
def tree_command(address: str | None, config: Path | None, style: str) -> None:
    """Show all trees of agents, or the part below ADDRESS."""
    with _open_host(config) as host:
        lines = agent_lines(host.journal, address)
    if style == "json":
        click.echo(document([each.to_json() for each in lines]))
        return
    if not lines:
        click.echo(
            "no agents: `vesper serve` and `vesper work` start those of nodes of type `supervisor`, and "
            "`vesper.agents.spawn` starts one (docs/how-to/supervise-agents.md)"
        )
        return
    rows = [["agent", "state", "node", "incarnation", "waiting", "running", "dead", "on failure"]]
    rows += [_row(each) for each in lines]
    click.echo("\n".join(table(rows)))
    for each in lines:
        if each.reason and each.kind == "agent":
            click.echo(f"{printable(each.address)}: {printable(each.reason)}")


@command.command("send")
@address_argument
@input_options
@click.option("--priority", type=click.IntRange(-1000, 1000), default=0, show_default=True, help="Higher ones first.")
@click.option("--key", metavar="TEXT", help="Idempotency key: a repeat returns the first message.")
@click.option("--wait", "timeout", type=click.FloatRange(0), metavar="SECONDS", help="Wait for the outcome.")
@nodes_option
@config_option()
@style_option
def send_command(
    address: str, pairs: tuple[str, ...], json_file: TextIO | None, priority: int, key: str | None,
    timeout: float | None, root: Path, config: Path | None, style: str,
) -> None:  # fmt: skip
    """Put a message into the mailbox of an agent; the inputs are those of its node."""
    from vesper.agents.node_table import node_table
    from vesper.api.runs import RunHandle
    from vesper.cli.output.outcomes import outcome_json
    from vesper.cli.run.inputs import print_refusal, read_inputs
    from vesper.engines.outcome import Returned, outcome_code
    from vesper.host.outcomes import recorded_outcome
    from vesper.supervision.mailboxes import Mailboxes

    with _open_host(config) as host:
        resolve = node_table(host)
        resolve.search(root)
        mailboxes = Mailboxes(host, resolve)
        node = mailboxes.trees.agent(address)[1].node
        compiled = resolve(node or "").compiled
        inputs, unread = read_inputs(compiled, pairs, json_file)
        if unread:
            sys.exit(print_refusal(compiled, list(inputs), inputs, unread, style))
        execution = mailboxes.send(address, inputs, key=key, priority=priority)
        outcome = None
        if timeout is not None:
            handle = RunHandle(host, execution)
            handle.wait(timeout)
            outcome = recorded_outcome(host.journal.read(handle.execution).entries[-1].entry.body)
    found = {"execution": execution, "agent": address}
    if style == "json":
        click.echo(document(found if outcome is None else found | {"outcome": outcome_json(compiled.node, outcome)}))
    elif outcome is None:
        click.echo(f"sent as execution {execution}")
    elif isinstance(outcome, Returned):
        click.echo("\n".join(value_lines(dict(outcome.value), "")))
    else:
        click.echo(f"execution {execution}: {outcome_code(outcome) or outcome.kind}", err=True)
    sys.exit(0 if outcome is None or isinstance(outcome, Returned) else WRONG_INPUT)


@command.command("stop")
@change_options
def stop_command(address: str, root: Path, config: Path | None, by: str | None, why: str | None) -> None:
    """Stop an agent, or all below a supervisor. A message under way ends; others wait for `vesper agents start`."""
    _change(address, root, config, by, why, is_start=False)


@command.command("start")
@change_options
def start_command(address: str, root: Path, config: Path | None, by: str | None, why: str | None) -> None:
    """Start an agent that was stopped or has failed, or all below a supervisor."""
    _change(address, root, config, by, why, is_start=True)


def _change(address: str, root: Path, config: Path | None, by: str | None, why: str | None, is_start: bool) -> None:
    from vesper.agents.node_table import node_table
    from vesper.supervision.mailboxes import Mailboxes

    with _open_host(config) as host:
        resolve = node_table(host)
        resolve.search(root)
        act = start_agents if is_start else stop_agents
        changed = act(Mailboxes(host, resolve), address, by or current_user(), why or "")
    done, state = ("started", "running") if is_start else ("stopped", "not running")
    if not changed:
        click.echo(f"every agent of {printable(address)} was {state} already")
        return
    click.echo(f"{done} {number(len(changed), 'agent')}: {', '.join(map(printable, changed))}")


@contextmanager
def _open_host(config: Path | None) -> Iterator[Host]:
    """Open a Host without background work; end the command with the message of a problem."""
    with report_journal_errors():
        host = quiet_host(read_settings(config), finishes=False)
        try:
            yield host
        except VesperError as problem:
            raise click.ClickException("\n".join(map(printable, str(problem).splitlines()))) from None
        finally:
            host.close()


def _row(line: AgentLine) -> list[str]:
    name = "  " * line.depth + (line.address if line.depth == 0 else line.address.rpartition("/")[2])
    if line.kind == "supervisor":
        restarts = f"{line.strategy}, {line.restarts} of {line.max_restarts} restarts"
        return [printable(name), line.status, "-", "-", "-", "-", "-", restarts]
    counts = [str(each) for each in (line.incarnation, line.waiting, line.running, line.dead)]
    return [printable(name), line.status, printable(line.node or "-"), *counts, line.on_failure]
