"""A divergence made as small as it gets: the inputs, and what effects answered.

Every engine runs again on what an exemplar kept. Nothing is performed: a request is answered from the log, and one that
the log does not answer is told that the other side is unavailable, exactly as the conformance suite does with the case
that comes of it. Greedy, in one order, so that the same exemplar always becomes the same case; what is not small when
the time is over is as small as it got.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from vesper.compiler import Compiled
from vesper.engines.engine import Completion, Done, Program, Request
from vesper.engines.outcome import EngineFault
from vesper.language.ir.nodes import Node
from vesper.migration.compare.comparator import Comparator, Verdict, odd_of
from vesper.migration.compare.divergence import Divergence, Exemplar
from vesper.migration.compare.divergence_record import PAIR, fingerprint_by, transcript_in
from vesper.migration.compare.reports import Difference
from vesper.migration.compare.rerun_from_log import Given, compared, done_of, index_at, mark_of
from vesper.migration.compare.simpler import simpler_of
from vesper.migration.compare.transcript import Transcript
from vesper.values.types import Enum, Type
from vesper.values.vesper_error import VesperError
from vesper.verify.differential import verifier as differential
from vesper.verify.differential.regressions import FOLDER, regression_text, save_regression
from vesper.verify.differential.verifier import steps_by_expression
from vesper.verify.inputs.responses import GeneratedResponses
from vesper.verify.shrink.inputs import simpler_values

SECONDS = 10.0
MAX_TRIES = 20_000
_ALIKE = {"path": ("path", "value")}
"""A difference in the path is seen in a traced run as a value, or the lack of one, on the way."""


class CannotShrink(VesperError):
    """There is nothing to shrink; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest form that was found."""

    compiled: Compiled
    fingerprint: str
    found: differential.Difference
    """As `vesper verify` has it: the inputs, the answers of effects, and what each engine came to."""
    difference: Difference
    odd: str | None
    """Who stands alone, where three were asked."""
    size_before: int
    size: int
    tries: int
    is_finished: bool
    """False where the time was over first: it may get smaller."""

    @property
    def case(self) -> str:
        """The conformance case, as `vesper verify` writes it."""
        return regression_text(self.compiled, self.found, self._against)

    def save(self, folder: Path = FOLDER) -> Path:
        return save_regression(folder, self.compiled, self.found, self._against)

    @property
    def _against(self) -> str | None:
        return next((name for name in self.found.answers if name not in PAIR), None)


def shrink_divergence(
    compiled: Compiled,
    shown: Divergence | Exemplar | Transcript,
    programs: Mapping[str, Program],
    comparator: Comparator,
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] | None = None,
) -> Shrunk:
    """The smallest inputs and answers on which the engines differ in the same way. Raises `CannotShrink`.

    `programs` are the engines by name, the two that differed and any third. `progress` is told how many candidates were
    tried and how large the smallest one is.
    """
    engines = shown.engines if isinstance(shown, Divergence) else PAIR
    if isinstance(shown, Divergence) and shown.kind == "noise":
        raise CannotShrink("it is one engine that differs from itself, now and then: no case shows that again")
    for name in engines:
        if name not in programs:
            hint = "; --against MODULE:FUNCTION names the function, which is called again and again" * (":" in name)
            raise CannotShrink(
                f"the divergence is between {' and '.join(engines)}, and there is no {name} here to ask{hint}"
            )
    runner = _Runner(compiled, programs, engines, comparator, time.monotonic() + seconds)
    start, target = _start(runner, shown)
    search = _Search(runner, target, progress)
    small = search.smallest(start)
    return runner.result(small, start.size(), target, search.tries, not search.is_over)


def _start(runner: _Runner, shown: Divergence | Exemplar | Transcript) -> tuple[Given, _Target]:
    """The first execution that still shows it: the one with the very fingerprint before one of its kind."""
    wanted = shown if isinstance(shown, Divergence) else None
    kept = [each for each in _transcripts(shown) if each is not None]
    if not kept:
        raise CannotShrink(
            "no inputs were kept with it: the node is sensitive, or they were too large. The journal may have them "
            "under the name of the execution"
        )
    seen: list[tuple[Given, _Target]] = []
    for transcript in kept:
        given = Given.of(transcript, runner.node)
        runner.check(given)
        target = runner.target(given)
        if target is not None:
            seen.append((given, target))
    for given, target in seen:
        if wanted is None or target.fingerprint == wanted.fingerprint:
            return given, target
    for given, target in seen:
        if wanted is not None and target.kind in _ALIKE.get(wanted.kind, (wanted.kind,)):
            return given, target
    said = "they differ in another way" if seen else "they agree"
    raise CannotShrink(
        f"the engines ran again on what was kept, and {said}: the fault is mended, it comes and goes, or it was on the "
        "machine where it was seen"
    )


def _transcripts(shown: Divergence | Exemplar | Transcript) -> list[Transcript | None]:
    match shown:
        case Transcript():
            return [shown]
        case Exemplar():
            return [transcript_in(shown)]
        case Divergence():
            return [transcript_in(each) for each in shown.exemplars]


@dataclass(frozen=True, slots=True)
class _Target:
    """What must stay as it is."""

    kind: str
    fingerprint: str


class _Runner:
    """Runs the engines on what is given, and says how they differ."""

    def __init__(
        self,
        compiled: Compiled,
        programs: Mapping[str, Program],
        engines: tuple[str, str],
        comparator: Comparator,
        until: float,
    ) -> None:
        self._compiled = compiled
        self._programs = programs
        self._engines = engines
        self._comparator = comparator
        self._steps = steps_by_expression(compiled.node)
        self._responses = GeneratedResponses(compiled)
        self.until = until

    @property
    def node(self) -> Node:
        return self._compiled.node

    def check(self, given: Given) -> None:
        if given.now is None and self.node.type != "function":
            raise CannotShrink(f"{self.node.node_id} may ask for the time, and when the execution began was not kept")

    def done(self, name: str, given: Given) -> Done:
        return done_of(self._programs[name], given)

    def target(self, given: Given) -> _Target | None:
        """How the two differ; None where they do not, or nobody can say."""
        leader, follower = (self.done(name, given) for name in self._engines)
        verdict = self._compared(leader, follower)
        if not isinstance(verdict, Difference):
            return None
        faults = (done.outcome.message for done in (leader, follower) if isinstance(done.outcome, EngineFault))
        return _Target(verdict.kind, fingerprint_by(self.node.node_id, verdict, self._engines, next(faults, "")))

    def type_at(self, path: str) -> Type | None:
        """What a request at a path is answered with; None for a path that the node does not have any more."""
        try:
            return self._responses.type_of(path)
        except KeyError:
            return None

    def asked(self, given: Given) -> tuple[Request, ...]:
        """All that any of the engines asks for."""
        return tuple(each for name in self._programs for each in self.done(name, given).requests)

    def result(self, given: Given, size_before: int, target: _Target, tries: int, is_finished: bool) -> Shrunk:
        answers = {name: self.done(name, given) for name in self._programs}
        difference = self._compared(*(answers[name] for name in self._engines))
        assert isinstance(difference, Difference), "it differed a moment ago"
        leader, follower = (answers[name] for name in self._engines)
        place = index_at(mark_of(leader, follower), leader, follower)
        found = differential.Difference(
            dict(given.inputs),
            tries,
            answers,
            place,
            None if place is None else self._steps.get(place),
            any(name not in PAIR for name in self._engines),
            tuple((each.path, Completion(0, each.value, each.failure)) for each in given.answers),
            given.now,
        )
        return Shrunk(
            self._compiled,
            target.fingerprint,
            found,
            difference,
            odd_of(answers, self._compared),
            size_before,
            given.size(),
            tries,
            is_finished,
        )

    def _compared(self, leader: Done, follower: Done) -> Verdict:
        return compared(leader, follower, self._comparator, self._steps)


class _Search:
    """Greedy: each part in turn is made as simple as it gets, until a whole round changes nothing."""

    def __init__(self, runner: _Runner, target: _Target, progress: Callable[[int, int], None] | None) -> None:
        self._runner = runner
        self._target = target
        self._progress = progress
        self._steps = 0
        """How often something became simpler."""
        self.tries = 0
        self.is_over = False

    def smallest(self, given: Given) -> Given:
        while True:
            before = self._steps
            given = self._with_fewer_answers(given)
            for name in list(given.inputs):
                given = self._descend(given, partial(self._inputs, name=name))
            for number in range(len(given.answers)):
                given = self._descend(given, partial(self._answers, number=number))
            given = self._descend(given, _times)
            if self._steps == before or self.is_over:
                return given

    def _with_fewer_answers(self, given: Given) -> Given:
        """None at all, else only those that are asked for, else one less at a time: from the end, because what comes
        first leads to what comes later."""
        asked = {each.path for each in self._runner.asked(given)}
        wanted = tuple(each for each in given.answers if each.path in asked)
        fewest = [replace(given, answers=each) for each in ((), wanted) if len(each) < len(given.answers)]
        given = self._first(fewest) or given
        for number in reversed(range(len(given.answers))):
            fewer = replace(given, answers=given.answers[:number] + given.answers[number + 1 :])
            given = self._first([fewer]) or given
        return given

    def _descend(self, given: Given, candidates: Callable[[Given], Iterator[Given]]) -> Given:
        while (found := self._first(candidates(given))) is not None:
            given = found
        return given

    def _first(self, candidates: Iterable[Given]) -> Given | None:
        """The first candidate that still shows it; None where there is none, or no time."""
        for candidate in candidates:
            if self.tries >= MAX_TRIES or time.monotonic() >= self._runner.until:
                self.is_over = True
                return None
            self.tries += 1
            if self._runner.target(candidate) == self._target:
                self._steps += 1
                if self._progress is not None:
                    self._progress(self.tries, candidate.size())
                return candidate
        return None

    def _inputs(self, given: Given, name: str) -> Iterator[Given]:
        """Without the input, then with simpler values of it."""
        if name not in given.inputs:
            return
        yield replace(given, inputs={each: value for each, value in given.inputs.items() if each != name})
        type_ = next((each.type for each in self._runner.node.inputs if each.name == name), None)
        for simpler in simpler_of(type_, given.inputs[name]):
            yield replace(given, inputs={**given.inputs, name: simpler})

    def _answers(self, given: Given, number: int) -> Iterator[Given]:
        """With a simpler answer that its effect could give."""
        if number >= len(given.answers):
            return
        answer = given.answers[number]
        if answer.failure is not None:
            return
        type_ = self._runner.type_at(answer.path)
        asked = next((each for each in self._runner.asked(given) if each.path == answer.path), None)
        if asked is not None and asked.effect == "state_transition":
            type_ = Enum(tuple(asked.fixed["from"].split(",")))
        if type_ is None:
            return
        for simpler in simpler_of(type_, answer.value):
            changed = replace(answer, value=simpler)
            yield replace(given, answers=(*given.answers[:number], changed, *given.answers[number + 1 :]))


def _times(given: Given) -> Iterator[Given]:
    if given.now is not None:
        for simpler in simpler_values(given.now):
            assert isinstance(simpler, datetime)
            yield replace(given, now=simpler)
