"""All traces of a configuration: stored ones, and journalled executions converted on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from vesper.compiler import Compiled
from vesper.engines.outcome import outcome_code
from vesper.engines.registry import ENGINES, REFERENCE
from vesper.host.masking import Masks
from vesper.host.outcomes import recorded_outcome
from vesper.journal.entry import Kind
from vesper.journal.errors import JournalError
from vesper.journal.journal import Journal, Status, Summary
from vesper.language.diagnostics.suggest import suggestions
from vesper.storage.file_access import read_regular
from vesper.trace.expressions import BadExpression, BoundExpression, Expressions, Loader, names_of_inputs
from vesper.trace.journalled import trace_of_execution
from vesper.trace.model import MAX_BYTES, Trace, TraceError
from vesper.trace.programs import compiled_of
from vesper.trace.store import TraceStore, TraceSummary
from vesper.values.types import BOOLEAN

OUTCOMES = (
    "returned", "declared_error", "failed", "contract_broken", "denied", "limit_hit", "engine_fault", "unfinished",
)  # fmt: skip
UNFINISHED = OUTCOMES[-1]
_HAVE_CODES = ("declared_error", "failed", "limit_hit")
_MAX_SHOWN = 10
_MAX_RECENT = 200
_MAX_SCANNED = 10_000
"""Maximum number of the newest traces read for a filter on their contents."""


@dataclass(frozen=True, slots=True)
class Filters:
    nodes: tuple[str, ...] | None = None
    """Node ids; None means all."""
    since_us: int | None = None
    until_us: int | None = None
    outcome: str | None = None
    """Kind of outcome, or `unfinished`."""
    where: str | None = None
    """Expression over inputs that must hold."""
    is_diverged: bool = False
    asks_sensitive: bool = False
    """Whether the expression may read sensitive inputs: repeated queries could reveal a value."""

    @property
    def looks_inside(self) -> bool:
        return self.where is not None or self.is_diverged or self.outcome is not None or self.until_us is not None


@dataclass(slots=True)
class Listed:
    """Result of a list query."""

    found: list[TraceSummary] = field(default_factory=list)
    has_more: bool = False
    is_cut: bool = False
    """True if only the newest traces were read, so that older matches may be missing."""
    unread: int = 0
    """Number of unreadable traces: erased, sealed under a missing key, or damaged."""
    not_asked: int = 0
    """Number of traces left out because the expression reads a sensitive input."""


class Traces:
    """The traces of one configuration."""

    def __init__(self, store: TraceStore, journal: Journal | None) -> None:
        self.store = store
        self.journal = journal
        """None if the journal does not exist yet."""

    def find(self, wanted: str, engine: str | None = None) -> Trace:
        """Return the trace with this id, unique id prefix or file path. Raises `TraceError`."""
        if _is_file(wanted):
            return _check_definition(read_trace_file(Path(wanted)))
        trace_id, is_stored = self._resolve_id(wanted)
        if is_stored:
            return _check_definition(self.store.read(trace_id))
        assert self.journal is not None
        try:
            return trace_of_execution(self.journal, trace_id, engine)
        except JournalError as error:
            raise TraceError(f"execution {trace_id} has no trace: {error}") from None

    def _resolve_id(self, wanted: str) -> tuple[str, bool]:
        if not wanted or not wanted.isprintable() or len(wanted) > 200:
            raise TraceError(f"{wanted[:40]!a} is not a trace id")
        stored = set(self.store.ids(wanted, _MAX_SHOWN + 1))
        journalled: list[str] = []
        if self.journal is not None:
            journalled = list(islice(self.journal.executions(wanted), _MAX_SHOWN + 1))
        found = sorted(stored | set(journalled))
        if wanted in found or len(found) == 1:
            the_one = wanted if wanted in found else found[0]
            return the_one, the_one in stored
        if found:
            more = ["  …"] if len(found) > _MAX_SHOWN else []
            shown = [f"  {each}" for each in found[:_MAX_SHOWN]]
            raise TraceError("\n".join([f"several traces start with `{wanted}`:", *shown, *more]))
        recent = {each.trace_id[: len(wanted)]: each.trace_id for each in self.listed(Filters(), _MAX_RECENT).found}
        close = [recent[each] for each in suggestions(wanted, recent)]
        hint = f"did you mean {' or '.join(close)}?" if close else "`vesper traces list` shows all traces"
        raise TraceError(f"no trace `{wanted}`: it was never recorded or was pruned; {hint}")

    # -- lists ------------------------------------------------------------------------------------

    def listed(self, filters: Filters, limit: int) -> Listed:
        """Return traces, newest first. Raises `BadExpression` if the expression fits no node."""
        looking = _FilterRun(self, filters)
        listed = Listed()
        summaries = self._summaries(filters, _MAX_SCANNED if filters.looks_inside else limit + 1)
        listed.is_cut = filters.looks_inside and len(summaries) >= _MAX_SCANNED
        for summary in summaries:
            if not looking.keeps(summary):
                continue
            if len(listed.found) == limit:
                listed.has_more = True
                break
            listed.found.append(summary)
        looking.check()
        listed.unread = looking.unread
        listed.not_asked = looking.not_asked
        return listed

    def node_ids(self) -> list[str]:
        found = set(self.store.node_ids())
        if self.journal is not None:
            found |= set(self.journal.node_ids())
        return sorted(found)

    def _summaries(self, filters: Filters, most: int) -> list[TraceSummary]:
        found: dict[str, TraceSummary] = {}
        for node in filters.nodes or (None,):
            if self.journal is not None:
                for each in self.journal.find(node=node, since_us=filters.since_us, limit=most):
                    found[each.execution] = _journal_summary(each)
            for stored in self.store.find(node, filters.since_us, most):
                found[stored.trace_id] = stored
        return sorted(found.values(), key=lambda each: (each.started_us, each.trace_id), reverse=True)

    def inside(self, summary: TraceSummary) -> tuple[dict[str, object], bool]:
        """Return the inputs of a trace and whether its engines diverged."""
        if summary.is_stored:
            trace = self.store.read(summary.trace_id)
            return dict(trace.inputs), trace.divergence is not None
        assert self.journal is not None
        recorded = self.journal.read(summary.trace_id)
        if any(each.is_erased for each in recorded.entries):
            raise TraceError(f"execution {summary.trace_id} is erased")
        entries = [each.entry for each in recorded.entries]
        inputs = entries[0].body.get("inputs")
        has_diverged = any(each.kind is Kind.DIVERGENCE for each in entries)
        return dict(inputs) if isinstance(inputs, dict) else {}, has_diverged

    def code(self, summary: TraceSummary) -> str | None:
        """Return the code of a journalled execution's outcome."""
        assert self.journal is not None
        recorded = self.journal.read(summary.trace_id)
        if any(each.is_erased for each in recorded.entries):
            raise TraceError(f"execution {summary.trace_id} is erased")
        last = recorded.entries[-1].entry
        if last.kind is not Kind.END:
            return None
        outcome = recorded_outcome(last.body)
        return outcome_code(Masks(self.compiled(summary)).outcome(outcome) if summary.is_sensitive else outcome)

    def compiled(self, summary: TraceSummary) -> Compiled:
        """Return the node of a trace as it was recorded."""
        if summary.is_stored:
            return compiled_of(self.store.read(summary.trace_id).definition)
        assert self.journal is not None
        return compiled_of(self.journal.definition(summary.semantic_hash))


class _FilterRun:
    """Filters applied to summaries; nodes and the expression are compiled once per definition."""

    def __init__(self, traces: Traces, filters: Filters) -> None:
        self._traces = traces
        self._filters = filters
        self._questions: dict[str, tuple[Compiled, BoundExpression] | None] = {}
        self._problem: BadExpression | None = None
        self._loader = Loader()
        self.unread = 0
        self.not_asked = 0

    def keeps(self, summary: TraceSummary) -> bool:
        filters = self._filters
        if filters.until_us is not None and summary.started_us >= filters.until_us:
            return False
        if filters.outcome is not None and not self._has_outcome(summary, filters.outcome):
            return False
        if filters.where is None and not filters.is_diverged:
            return True
        asked = None if filters.where is None else self._question(summary, filters.where)
        if filters.where is not None and asked is None:
            return False
        if asked is not None and not filters.asks_sensitive and _is_about_sensitive(*asked):
            self.not_asked += 1
            return False
        try:
            inputs, has_diverged = self._traces.inside(summary)
        except (TraceError, JournalError):
            self.unread += 1
            return False
        if filters.is_diverged and not has_diverged:
            return False
        if asked is None:
            return True
        compiled, question = asked
        return question.holds(ENGINES[REFERENCE], names_of_inputs(compiled, inputs))

    def _has_outcome(self, summary: TraceSummary, wanted: str) -> bool:
        """Return whether the outcome has this kind or this code."""
        if wanted in (summary.outcome or UNFINISHED, summary.code):
            return True
        if summary.is_stored or wanted in OUTCOMES or summary.outcome not in _HAVE_CODES:
            return False
        try:  # summaries of the journal have no codes
            return self._traces.code(summary) == wanted
        except (TraceError, JournalError):
            self.unread += 1
            return False

    def _question(self, summary: TraceSummary, where: str) -> tuple[Compiled, BoundExpression] | None:
        if summary.semantic_hash not in self._questions:
            try:
                compiled = self._traces.compiled(summary)
                what = f"--where, for {summary.node_id}"
                asked = Expressions(compiled, self._loader).parse(where, names_of_inputs(compiled, {}), BOOLEAN, what)
                self._questions[summary.semantic_hash] = compiled, asked
            except BadExpression as problem:
                self._problem = self._problem or problem
                self._questions[summary.semantic_hash] = None
            except (TraceError, JournalError):
                self.unread += 1
                return None
        return self._questions[summary.semantic_hash]

    def check(self) -> None:
        """Raise the error of an expression that fits no node; one that fits some is valid."""
        if self._problem is not None and not any(self._questions.values()):
            raise self._problem


def _is_about_sensitive(compiled: Compiled, question: BoundExpression) -> bool:
    return any(("input", name) in question.mentions for name in compiled.node.grants.sensitive)


def _journal_summary(each: Summary) -> TraceSummary:
    took = each.updated_us - each.started_us if each.status is Status.ENDED else None
    return TraceSummary(
        each.execution,
        each.node_id,
        each.semantic_hash,
        (each.engine,),
        each.started_us,
        took,
        each.outcome,
        None,
        None,
        None,
        each.is_sensitive,
        is_stored=False,
    )


def _check_definition(trace: Trace) -> Trace:
    """Return the trace if its definition is readable and matches its hash. Raises `TraceError`."""
    compiled_of(trace.definition)
    return trace


def _is_file(wanted: str) -> bool:
    return ("/" in wanted or wanted.endswith(".json")) and "\0" not in wanted


def read_trace_file(path: Path) -> Trace:
    """Read a file written by `vesper traces export`."""
    try:
        return Trace.from_bytes(read_regular(path, MAX_BYTES), str(path))
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}") from None
