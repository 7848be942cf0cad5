"""Output of a running `vesper verify`: a progress bar, crashes at once, nodes in their order."""

from __future__ import annotations

import time
from pathlib import Path

import click

from vesper.cli.output.branches import refusal_notes, uncovered_lines
from vesper.cli.output.progress import Progress
from vesper.cli.verify.reports import VerifiedNode, VerifyResults
from vesper.cli.verify.text import broken_text, case_text, crash_text, difference_text, failure_text, summary_line
from vesper.verify.differential.regressions import save_program, save_regression
from vesper.verify.differential.verifier import Difference
from vesper.verify.programs.campaign import INPUTS_PER_PROGRAM, ProgramsReport
from vesper.verify.workers.crashes import Crash
from vesper.verify.workers.orders import Plan
from vesper.verify.workers.results import NodeProgress


class Display:
    """The display of a run: saves and prints its findings.

    Other formats than text are printed at its end.
    """

    def __init__(self, found: VerifyResults, save_to: Path, is_text: bool) -> None:
        self._found = found
        self._save_to = save_to
        self._is_text = is_text
        self._waiting: dict[str, NodeProgress] = {}
        """Nodes that are done before one that is listed earlier."""
        self._saved: dict[tuple[str, int], Path] = {}
        """Files of crashes, by node and place in the list of its crashes."""
        self._progress: Progress | None = None
        self._begun = time.monotonic()
        self._seconds: float | None = None
        self._order: list[NodeProgress] = []

    def begin(self, nodes: list[NodeProgress], plan: Plan, kept: int) -> None:
        """Show the progress of a run that begins now."""
        self._order = list(nodes)
        self._seconds = plan.seconds
        programs = (plan.max_programs + kept) * INPUTS_PER_PROGRAM
        inputs = len(nodes) * plan.max_inputs + programs
        self._progress = Progress("verifying", inputs if plan.seconds is None else float(plan.seconds)).__enter__()

    def crashed(self, node: NodeProgress, crash: Crash) -> None:
        """Save and print a crash."""
        saved = None
        compiled = node.compiled
        # Completions of requests are not known here; the seed draws them again.
        if crash.inputs is not None and crash.stage == "run" and compiled.node.is_pure():
            difference = Difference(crash.inputs, crash.number, {}, None, None)
            why = f"{crash.engine} crashed ({crash.ending.kind})"
            saved = save_regression(self._save_to, compiled, difference, why=why)
            self._saved[compiled.node.node_id, len(node.crashes) - 1] = saved
        if self._is_text:
            click.echo(crash_text(compiled, crash, node.report.seed, saved) + "\n", err=True)

    def verified(self, node: NodeProgress) -> None:
        """Print a node as soon as all that are listed before it were printed."""
        self._waiting[node.compiled.node.node_id] = node
        while self._order and self._order[0].compiled.node.node_id in self._waiting:
            self._show(self._order.pop(0))

    def advanced(self, executions: int) -> None:
        if self._progress is not None:
            done = executions if self._seconds is None else time.monotonic() - self._begun
            self._progress.reach(done, f"{executions:,} inputs" if self._seconds is not None else "")

    def end(self, is_interrupted: bool) -> None:
        """Print the nodes that were not printed; after an interruption only those that were begun."""
        if self._progress is not None:
            self._progress.__exit__()
        for node in self._order:
            if node.is_begun or not is_interrupted:
                self._show(node)
        self._order = []

    def show_programs(self, report: ProgramsReport) -> None:
        """Save the failing programs, and print them."""
        for failure in report.failures:
            saved = save_program(self._save_to, failure.text) if failure.text else None
            case = None
            if failure.compiled is not None and failure.difference is not None:
                case = save_regression(self._save_to, failure.compiled, failure.difference)
            if self._is_text:
                click.echo(failure_text(failure, saved, case) + "\n", err=True)

    def _show(self, node: NodeProgress) -> None:
        compiled, report, against = node.compiled, node.report, self._found.against
        saved = [save_regression(self._save_to, compiled, each, against) for each in report.differences]
        name = compiled.node.node_id
        crashes = [(crash, self._saved.get((name, number))) for number, crash in enumerate(node.crashes)]
        verified = VerifiedNode(compiled, report, saved, crashes, node.is_given_up)
        self._found.nodes.append(verified)
        if self._is_text:
            self._print_node(verified)

    def _print_node(self, verified: VerifiedNode) -> None:
        compiled, report = verified.compiled, verified.report
        for failure in report.case_failures:
            click.echo(case_text(compiled, failure), err=True)
        for difference, path in zip(report.differences, verified.saved, strict=True):
            click.echo(difference_text(compiled, difference, path) + "\n", err=True)
        for broken in report.broken:
            click.echo(broken_text(compiled, broken) + "\n", err=True)
        click.echo(summary_line(report, len(verified.crashes), verified.is_given_up))
        if verified.is_given_up:
            return
        for line in uncovered_lines(compiled.source.path, report.coverage.uncovered):
            click.echo(f"  {line}")
        for note in refusal_notes(compiled, report.broken_clauses, report.executions + report.refused):
            click.echo(f"  note: {note}")
        below = self._found.coverage_message(verified)
        if below is not None:
            click.echo(below, err=True)
