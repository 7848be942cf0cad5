"""A change of a node's text as a fix: what it changes, and what it does to everything that ran before."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vesper.compiler import Compiled
from vesper.engines.registry import PAIR
from vesper.journal.errors import JournalError
from vesper.replay.rerun import Unrecorded, replay
from vesper.trace.library import Filters, Traces
from vesper.trace.model import Trace, TraceError
from vesper.trace.programs import program_of
from vesper.values.vesper_error import VesperError
from vesper.verify.differential.verifier import meets
from vesper.verify.inputs.responses import UnexpectedRequest, run_case

MOST_TRACES = 1_000
"""So many of the newest are replayed before a fix is written."""


class NotApplied(VesperError):
    """The fix was not written; the message says why. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """What the changed node does with everything that is kept of it, on every engine."""

    cases: int
    traces: int
    engines: tuple[str, ...]
    problems: tuple[str, ...]
    """What comes out otherwise than before."""
    unread: int = 0
    lame: int = 0
    """Traces that replay not even with the text that they ran with: a changed text is not to blame for them."""

    @property
    def is_clean(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        what = (
            f"{_count(self.cases, 'case')} and {_count(self.traces, 'trace')} replayed on {' and '.join(self.engines)}"
        )
        told = "all as before" if self.is_clean else f"{len(self.problems)} not as before"
        unread = f"; {_count(self.unread, 'trace')} could not be read" if self.unread else ""
        lame = f"; {_count(self.lame, 'trace')} replayed not even before the change" if self.lame else ""
        return f"{what}: {told}{unread}{lame}"


def _count(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"


def yaml_diff(path: str, before: str, after: str) -> str:
    """A unified diff of a node's text."""
    shown = path.lstrip("/")
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{shown}", f"b/{shown}", n=2
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def replay_corpus(compiled: Compiled, corpus: Iterable[Trace], unread: int = 0) -> CorpusReport:
    """Runs the node's own cases and the traces of its earlier text on every engine. Nothing is performed."""
    problems: list[str] = []
    programs = {name: program_of(compiled, name) for name in PAIR}
    for case in compiled.cases:
        for name, program in programs.items():
            try:
                if not meets(case, run_case(program, case).outcome):
                    problems.append(f"case `{case.name}` on {name}: it ends otherwise")
            except UnexpectedRequest as problem:
                problems.append(f"case `{case.name}` on {name}: {problem}")
    count, lame = 0, 0
    for trace in corpus:
        found = {name: told for name in programs if (told := _difference(trace, name, compiled)) is not None}
        if found and any(_difference(trace, name, None) is not None for name in found):
            lame += 1
            continue
        count += 1
        problems += [f"trace {trace.trace_id} on {name}: {told}" for name, told in found.items()]
    return CorpusReport(len(compiled.cases), count, tuple(programs), tuple(problems), unread, lame)


def _difference(trace: Trace, engine: str, compiled: Compiled | None) -> str | None:
    """Where a trace comes out otherwise with another text, or without one with its own; None where it does not."""
    try:
        return replay(trace, engine, compiled).difference
    except Unrecorded as problem:
        return str(problem)


def stored_corpus(traces: Traces, trace: Trace, most: int = MOST_TRACES) -> tuple[list[Trace], int]:
    """The newest traces of the same definition, and how many of them could not be read."""
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
    """That the file still holds the text that ran. Raises `NotApplied`."""
    try:
        held = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise NotApplied(
            f"{path} is gone: the trace carries its text, and nothing is written where it stood; "
            f"--nodes says where {trace.node_id} is now"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise NotApplied(f"{path} cannot be read: {error}") from None
    if held.replace("\r\n", "\n") != trace.definition.source.replace("\r\n", "\n"):
        raise NotApplied(f"{path} has changed since the execution: apply the diff above by hand")
