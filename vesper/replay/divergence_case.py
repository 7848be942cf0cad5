"""A divergence as a case of its node: its smallest inputs and answers, with the outcome of the reference engine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from vesper.compiler import Compiled, compile_source
from vesper.engines.engine import Completion, Done, EngineUnavailable, Limits, Program, Request
from vesper.engines.registry import REFERENCE, engine_named
from vesper.host.outcomes import outcome_record
from vesper.host.plans import Plans, plans_of
from vesper.journal.entry import Entry, Kind
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.yaml.edits import EditRejected
from vesper.migration.compare.answers import stored_transcript
from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.rerun_from_log import Given
from vesper.migration.stores.kept_divergences import SMALL_GIVEN
from vesper.testing.case_insertion import add_case
from vesper.testing.recorder import NotRecorded, case_lines
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError
from vesper.verify.inputs.responses import TooManyRequests, run_with

_RUN_LIMIT_SECONDS = 2.0
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""Start time of a node that reads none."""


class CannotKeep(VesperError):
    """The divergence cannot be written as a case; the message gives the reason. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class _CaseNode:
    """The parts of a prepared node that `case_lines` reads."""

    compiled: Compiled
    program: Program
    plans: Plans


def text_with_case(compiled: Compiled, divergence: Divergence, comment: str) -> str:
    """Return the text of the node with the divergence as its last case, below a comment. Raises `CannotKeep`."""
    name = f"divergence {divergence.fingerprint}"
    if any(each.name == name for each in compiled.cases):
        raise CannotKeep(f"it is a case of the node already: `{name}`")
    if plans_of(compiled).is_sensitive:
        raise CannotKeep("the node is sensitive, and only the journal has the inputs")
    return text_with_lines(compiled, given_case(compiled, _smallest_given(divergence, compiled), name, comment))


def given_case(compiled: Compiled, given: Given, name: str, comment: str) -> list[str]:
    """Return the lines of a case below a comment: the outcome of the reference on stored inputs and completions."""
    try:
        node = _CaseNode(compiled, engine_named(REFERENCE).load(compiled), plans_of(compiled))
        lines = case_lines(node, _entries(node.program, given), name)
    except (NotRecorded, EngineUnavailable) as problem:
        raise CannotKeep(str(problem)) from None
    if given.now is None:
        lines = [line for line in lines if not line.startswith("      now:")]
    return [f"    # {printable(comment)}", *lines]


def text_with_lines(compiled: Compiled, lines: list[str]) -> str:
    """Return the text of the node with a case at its end. Raises `CannotKeep` where it has an error with it."""
    try:
        after = add_case(compiled.source.text, lines)
    except EditRejected as problem:
        raise CannotKeep(str(problem)) from None
    changed, bag = compile_source(SourceFile(compiled.source.path, after))
    if changed is None or len(changed.cases) != len(compiled.cases) + 1:
        found = next((each.headline for each in bag.sorted()), "the case is not read back")
        raise CannotKeep(f"with the case the node has an error: {found}")
    return after


def _smallest_given(divergence: Divergence, compiled: Compiled) -> Given:
    """Return the smallest inputs and completions, else those of the first stored execution."""
    small = divergence.extra.get(SMALL_GIVEN)
    if isinstance(small, str):
        return Given.from_text(small)
    problem = "no execution is stored"
    for exemplar in divergence.exemplars:
        transcript, problem = stored_transcript(exemplar)
        if transcript is not None:
            return Given.of(transcript, compiled.node)
    raise CannotKeep(problem)


def _entries(program: Program, given: Given) -> list[Entry]:
    """Return a run of the reference engine on stored completions, as journal entries. Performs nothing."""
    settled: list[Entry] = []
    respond = given.responder()

    def answer(request: Request) -> Completion:
        found = respond(request)
        kind = Kind.RESULT if found.failure is None else Kind.FAILED
        body: dict[str, object] = {"value": found.result} if found.failure is None else {"code": found.failure}
        settled.append(Entry(kind, request.path, request.effect, request.effect_class, request.key, "", body))
        return found

    now = given.now or _NO_TIME
    try:
        done: Done = run_with(program, dict(given.inputs), now, answer, Limits(seconds=_RUN_LIMIT_SECONDS))
    except TooManyRequests:
        raise NotRecorded("the node makes too many requests for a case") from None
    start = Entry(Kind.START, body={"inputs": dict(given.inputs), "now": now})
    return [start, *settled, Entry(Kind.END, body=outcome_record(done.outcome))]
