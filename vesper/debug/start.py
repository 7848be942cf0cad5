"""From what somebody asks for to a session: the node, its inputs, and where answers come from. Nothing is performed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from vesper.compiler import Compiled
from vesper.debug.responses import Answers, Book, CaseAnswers, Defaults, Live, Recorded, Said
from vesper.debug.session import Session
from vesper.engines.engine import Completion, Engine
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
    """One execution that can be begun again and again, with other inputs or other answers."""

    compiled: Compiled
    engines: tuple[Engine, ...]
    inputs: Mapping[str, object]
    now: datetime
    said: Said
    sources: tuple[Answers, ...] = ()
    """Of a recorded run: then nobody else answers."""
    case: Case | None = None
    loader: Loader = field(default_factory=Loader)

    def session(self, world: Live | None = None) -> Session:
        """A new session from the start. Each has answers of its own: a case is read from its beginning. With the real
        `world` nobody else answers: what it was not asked is not in the journal, and such a run replays nowhere."""
        stubs: tuple[Answers, ...] = self.sources
        if not stubs:
            stubs = (*(() if self.case is None else (CaseAnswers(self.case),)), Defaults(self.now))
        book = Book(self.said, *stubs) if world is None else Book(world)
        return Session(self.compiled, self.engines, self.inputs, self.now, book, loader=self.loader)

    def with_input(self, name: str, value: object) -> Subject:
        return replace(self, inputs={**self.inputs, name: value})

    def with_answer(self, path: str, value: object) -> Subject:
        """The same, where the request at this path is answered with another value."""
        said = self.said.copied()
        said.put(path, value)
        return replace(self, said=said)


def case_of(compiled: Compiled, wanted: str | None) -> Case | None:
    """The case of this name; without one the first, and None where there is none."""
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
    """A case, with these inputs in the place of its own."""
    inputs = {**(case.inputs if case is not None else {}), **given}
    return Subject(compiled, tuple(engines), inputs, now or start_of(case), Said(compiled), case=case)


def subject_for_real(
    compiled: Compiled, engines: Sequence[Engine], case: Case | None, given: Mapping[str, object], now: datetime
) -> Subject:
    """An execution whose effects are performed. Of a case, which somebody must have named, it takes the inputs alone:
    what a node writes into the world under `now()` is never the time of a test."""
    return replace(subject_of_case(compiled, engines, case, given, now), case=None)


def unfit_inputs(subject: Subject) -> list[Problem]:
    """What an engine would refuse of the inputs, known before anything is journalled."""
    declared = [(each.name, each.type, each.default) for each in subject.compiled.node.inputs]
    _, problems = accept_inputs(declared, dict(subject.inputs))
    return problems


def subject_of_trace(trace: Trace, engines: Sequence[Engine], loader: Loader | None = None) -> Subject:
    """A recorded run, on the node as it was then; what was not recorded is answered by nobody but you. Raises
    `TraceError` where the node that it carries is none, or was changed."""
    compiled = compiled_of(trace.definition)
    exchanges = {each.path: Completion(0, each.value, each.failure) for each in trace.exchanges}
    subject = subject_of_case(compiled, engines, None, dict(trace.inputs), trace.now)
    return replace(subject, sources=(Recorded(exchanges),), loader=loader or Loader())
