"""Construction of a session from a case, a trace or given inputs. Performs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from vesper.compiler import Compiled
from vesper.debug.responses import AnswerBook, Answers, CaseAnswers, Defaults, Live, ManualAnswers, RecordedAnswers
from vesper.debug.session import Session
from vesper.engines.engine import Completion, Engine, Limits
from vesper.language.check.cases import Case
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.trace.expressions import Loader
from vesper.trace.model import Trace
from vesper.trace.programs import compiled_of
from vesper.values.inputs import accept_inputs
from vesper.values.problem import Problem
from vesper.verify.inputs.responses import NOON


class NoSuchCase(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Subject:
    """One execution that can start repeatedly, with other inputs or answers."""

    compiled: Compiled
    engines: tuple[Engine, ...]
    inputs: Mapping[str, object]
    now: datetime
    manual: ManualAnswers
    sources: tuple[Answers, ...] = ()
    """Answers of a recorded run. If present, cases and defaults are not consulted."""
    case: Case | None = None
    loader: Loader = field(default_factory=Loader)

    def session(self, world: Live | None = None, limits: Limits | None = None) -> Session:
        """Return a new session at the start, with its own answers.

        A `world` that performs effects is the only source of answers: an answer from elsewhere would be missing in the
        journal, and the run could not be replayed.
        """
        stubs: tuple[Answers, ...] = self.sources
        if not stubs:
            stubs = (*(() if self.case is None else (CaseAnswers(self.case),)), Defaults(self.now))
        book = AnswerBook(self.manual, *stubs) if world is None else AnswerBook(world)
        return Session(self.compiled, self.engines, self.inputs, self.now, book, limits, loader=self.loader)

    def with_input(self, name: str, value: object) -> Subject:
        return replace(self, inputs={**self.inputs, name: value})

    def with_answer(self, path: str, value: object) -> Subject:
        """Return a copy whose request at this path is answered with another value."""
        manual = self.manual.copy()
        manual.set_value(path, value)
        return replace(self, manual=manual)


def case_of(compiled: Compiled, wanted: str | None) -> Case | None:
    """Return the case of this name, the first one without a name, or None without cases."""
    if wanted is None:
        return compiled.cases[0] if compiled.cases else None
    found = next((each for each in compiled.cases if each.name == wanted), None)
    if found is None:
        names = [each.name for each in compiled.cases]
        hint = did_you_mean(wanted, names) or (f"the cases are {', '.join(names)}" if names else "it has none")
        raise NoSuchCase(f"{compiled.node.node_id} has no case `{wanted}`; {hint}")
    return found


def start_of(case: Case | None) -> datetime:
    return case.now if case is not None and isinstance(case.now, datetime) else NOON


def subject_of_case(
    compiled: Compiled, engines: Sequence[Engine], case: Case | None, given: Mapping[str, object], now: datetime | None
) -> Subject:
    """Return the execution of a case, with `given` in place of its own inputs."""
    inputs = {**(case.inputs if case is not None else {}), **given}
    return Subject(compiled, tuple(engines), inputs, now or start_of(case), ManualAnswers(compiled), case=case)


def subject_for_real(
    compiled: Compiled, engines: Sequence[Engine], case: Case | None, given: Mapping[str, object], now: datetime
) -> Subject:
    """Return an execution whose effects are performed.

    It takes only the inputs of a case that the user named: `now()` is the real time, never the time of a case.
    """
    return replace(subject_of_case(compiled, engines, case, given, now), case=None)


def unfit_inputs(subject: Subject) -> list[Problem]:
    """Return the problems for which an engine would reject the inputs, before a journal entry exists."""
    declared = subject.compiled.node.declared_inputs
    _, problems = accept_inputs(declared, dict(subject.inputs))
    return problems


def subject_of_trace(trace: Trace, engines: Sequence[Engine], loader: Loader | None = None) -> Subject:
    """Return a recorded run on the definition that the trace carries.

    Only the user can answer requests that were not recorded. Raises `TraceError` if the definition is invalid or was
    changed.
    """
    compiled = compiled_of(trace.definition)
    exchanges = {each.path: Completion(0, each.value, each.failure) for each in trace.exchanges}
    subject = subject_of_case(compiled, engines, None, dict(trace.inputs), trace.now)
    return replace(subject, sources=(RecordedAnswers(exchanges),), loader=loader or Loader())
