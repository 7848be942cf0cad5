"""A change of a node's text as a fix: its diff, and its effect on earlier runs."""

from __future__ import annotations

import difflib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vesper.compiler import Compiled
from vesper.engines.registry import PAIR
from vesper.journal.errors import JournalError
from vesper.replay.rerun import UnrecordedRequest, replay
from vesper.trace.library import Filters, Traces
from vesper.trace.model import Trace, TraceError
from vesper.trace.programs import program_of
from vesper.values.vesper_error import VesperError
from vesper.verify.differential.verifier import meets
from vesper.verify.inputs.responses import UnexpectedRequest, run_case

MAX_TRACES = 1_000
"""Maximum number of the newest traces replayed before a fix is written."""


class FixRejected(VesperError):
    """The fix was not written; the message gives the reason. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """Results of the changed node on its cases and stored traces, on every engine."""

    cases: int
    traces: int
    engines: tuple[str, ...]
    problems: tuple[str, ...]
    """Descriptions of cases and traces whose results changed."""
    unread: int = 0
    unreplayable: int = 0
    """Traces that do not replay even with their own text, so that the change is not to blame."""
    omitted: int = 0
    """Cases and traces left out, because the time was over."""

    @property
    def is_clean(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        what = (
            f"{_count(self.cases, 'case')} and {_count(self.traces, 'trace')} replayed on {' and '.join(self.engines)}"
        )
        told = "all as before" if self.is_clean else f"{len(self.problems)} not as before"
        unread = f"; {_count(self.unread, 'trace')} could not be read" if self.unread else ""
        unreplayable = (
            f"; {_count(self.unreplayable, 'trace')} did not replay even before the change" if self.unreplayable else ""
        )
        omitted = f"; {self.omitted:,} more were left out, because the time was over" if self.omitted else ""
        return f"{what}: {told}{unread}{unreplayable}{omitted}"


def _count(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"


def yaml_diff(path: str, before: str, after: str) -> str:
    """Return a unified diff of a node's text."""
    shown = path.lstrip("/")
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{shown}", f"b/{shown}", n=2
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def replay_corpus(
    compiled: Compiled, corpus: Sequence[Trace], unread: int = 0, deadline: float = math.inf
) -> CorpusReport:
    """Run the node's cases and the traces of its earlier text on every engine. Performs nothing.

    `deadline` is a time of `time.monotonic`, after which the rest is left out.
    """
    problems: list[str] = []
    programs = {name: program_of(compiled, name) for name in PAIR}
    cases = 0
    for case in compiled.cases:
        if time.monotonic() >= deadline:
            break
        cases += 1
        for name, program in programs.items():
            try:
                if not meets(case, run_case(program, case).outcome):
                    problems.append(f"case `{case.name}` on {name}: the outcome differs")
            except UnexpectedRequest as problem:
                problems.append(f"case `{case.name}` on {name}: {problem}")
    count, unreplayable = 0, 0
    for trace in corpus:
        if time.monotonic() >= deadline:
            break
        found = {name: told for name in programs if (told := _difference(trace, name, compiled)) is not None}
        if found and any(_difference(trace, name, None) is not None for name in found):
            unreplayable += 1
            continue
        count += 1
        problems += [f"trace {trace.trace_id} on {name}: {told}" for name, told in found.items()]
    omitted = len(compiled.cases) - cases + len(corpus) - count - unreplayable
    return CorpusReport(cases, count, tuple(programs), tuple(problems), unread, unreplayable, omitted)


def _difference(trace: Trace, engine: str, compiled: Compiled | None) -> str | None:
    """Return how a trace replays differently with another text, or with its own; else None."""
    try:
        return replay(trace, engine, compiled).difference
    except UnrecordedRequest as problem:
        return str(problem)


def stored_corpus(traces: Traces, trace: Trace, most: int = MAX_TRACES) -> tuple[list[Trace], int]:
    """Return the newest traces of the same definition, and how many could not be read."""
    found: list[Trace] = []
    unread = 0
    for summary in traces.listed(Filters(nodes=(trace.node_id,)), most).found:
        if summary.semantic_hash != trace.semantic_hash or summary.outcome is None:
            continue
        try:
            found.append(traces.find(summary.trace_id))
        except (TraceError, JournalError):
            unread += 1
    if not any(each.trace_id == trace.trace_id for each in found):
        found.append(trace)
    return found, unread


def check_file(path: Path, trace: Trace) -> None:
    """Check that the file still holds the text that ran. Raises `FixRejected`."""
    try:
        held = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise FixRejected(
            f"{path} does not exist any more, and no new file is written; "
            f"pass the folder of {trace.node_id} with --nodes"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise FixRejected(f"{path} cannot be read: {error}") from None
    if held.replace("\r\n", "\n") != trace.definition.source.replace("\r\n", "\n"):
        raise FixRejected(f"{path} has changed since the execution: apply the diff above by hand")
