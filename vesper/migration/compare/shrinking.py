"""Shrinking of a divergence: the smallest inputs and completions that still show it.

Every engine runs again on a stored exemplar. Nothing is performed: the log completes requests, and a request without a
completion in the log fails as `unavailable`, as in the conformance case that results. The search is greedy and
deterministic, so that the same exemplar always yields the same case. It ends after a time limit with the smallest form
so far.
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
from vesper.engines.path import Conditions, conditions_of_marks
from vesper.language.ir.nodes import Node
from vesper.migration.compare.comparator import Comparator, Verdict, odd_one_of
from vesper.migration.compare.divergence import Divergence, Exemplar
from vesper.migration.compare.divergence_record import PAIR, fingerprint_by, transcript_in
from vesper.migration.compare.reports import Difference
from vesper.migration.compare.rerun_from_log import Given, compare_done, index_at, mark_of, run_to_end
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
"""Kinds that count as the same divergence. A traced run shows another path as another value, or a missing one."""


class CannotShrink(VesperError):
    """There is nothing to shrink; the message contains the reason and the next step."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest form that was found."""

    compiled: Compiled
    place: str
    """Fingerprint of the place at which the engines differ, without a path."""
    found: differential.Difference
    """The difference as `vesper verify` reports it: inputs, completions, and the outcome of each engine."""
    difference: Difference
    odd: str | None
    """Engine that differs from two others, where three ran."""
    size_before: int
    size: int
    tries: int
    is_finished: bool
    """False where the time limit ended the search early."""
    given: Given
    """The smallest inputs and completions."""

    @property
    def case(self) -> str:
        """The text of the conformance case, as `vesper verify` writes it."""
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
    *,
    keeps_path: bool = False,
) -> Shrunk:
    """Return the smallest inputs and completions on which the engines differ in the same way.

    `keeps_path` keeps every condition as it is, for a place at which several paths differ: a smaller case of another
    path may show another fault.
    `programs` are the engines by name: the two that differed, and any third. `progress` receives the number of
    candidates tried and the size of the smallest. Raises `CannotShrink`.
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
    runner = _Runner(compiled, programs, engines, comparator, time.monotonic() + seconds, keeps_path)
    start, target = _start(runner, shown)
    search = _Search(runner, target, progress)
    small = search.smallest(start)
    return runner.result(small, start.size(), target, search.tries, not search.is_over)


def _start(runner: _Runner, shown: Divergence | Exemplar | Transcript) -> tuple[Given, _Target]:
    """Return the first execution that still differs.

    One with the same fingerprint is preferred to one of the same kind.
    """
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
        if wanted is None or target.place == wanted.place:
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
    """The identity that every candidate must keep."""

    kind: str
    place: str
    """Fingerprint of the place, without a path."""
    conditions: Conditions | None
    """Conditions of the follower; None where a candidate may take another path."""


class _Runner:
    """Runs of the engines on given inputs and completions, and their comparison."""

    def __init__(
        self,
        compiled: Compiled,
        programs: Mapping[str, Program],
        engines: tuple[str, str],
        comparator: Comparator,
        until: float,
        keeps_path: bool,
    ) -> None:
        self._compiled = compiled
        self._programs = programs
        self._engines = engines
        self._comparator = comparator
        self._steps = steps_by_expression(compiled.node)
        self._responses = GeneratedResponses(compiled)
        self._keeps_path = keeps_path
        self.until = until

    @property
    def node(self) -> Node:
        return self._compiled.node

    def check(self, given: Given) -> None:
        if given.now is None and self.node.type != "function":
            raise CannotShrink(f"{self.node.node_id} may ask for the time, and when the execution began was not kept")

    def done(self, name: str, given: Given) -> Done:
        return run_to_end(self._programs[name], given)

    def target(self, given: Given) -> _Target | None:
        """Return how the two engines differ; None where they agree or are incomparable."""
        leader, follower = (self.done(name, given) for name in self._engines)
        verdict = self._compare(leader, follower)
        if not isinstance(verdict, Difference):
            return None
        faults = (done.outcome.message for done in (leader, follower) if isinstance(done.outcome, EngineFault))
        place = fingerprint_by(self.node.node_id, verdict, self._engines, next(faults, ""))
        conditions = conditions_of_marks(follower.marks, self.node) if self._keeps_path else None
        return _Target(verdict.kind, place, conditions)

    def type_at(self, path: str) -> Type | None:
        """Return the type of the completion at a path; None for a path that the node does not have any more."""
        try:
            return self._responses.type_of(path)
        except KeyError:
            return None

    def requests_of(self, given: Given) -> tuple[Request, ...]:
        """Return the requests of all engines."""
        return tuple(each for name in self._programs for each in self.done(name, given).requests)

    def result(self, given: Given, size_before: int, target: _Target, tries: int, is_finished: bool) -> Shrunk:
        answers = {name: self.done(name, given) for name in self._programs}
        difference = self._compare(*(answers[name] for name in self._engines))
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
            target.place,
            found,
            difference,
            odd_one_of(answers, self._compare),
            size_before,
            given.size(),
            tries,
            is_finished,
            given,
        )

    def _compare(self, leader: Done, follower: Done) -> Verdict:
        return compare_done(leader, follower, self._comparator, self._steps)


class _Search:
    """A greedy search that simplifies each part in turn, until a whole round changes nothing."""

    def __init__(self, runner: _Runner, target: _Target, progress: Callable[[int, int], None] | None) -> None:
        self._runner = runner
        self._target = target
        self._progress = progress
        self._steps = 0
        """Number of simplifications so far."""
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
            given = self._descend(given, _simpler_times)
            if self._steps == before or self.is_over:
                return given

    def _with_fewer_answers(self, given: Given) -> Given:
        """Remove completions: all, else those without a request, else one at a time.

        It starts at the end, because later requests depend on earlier completions.
        """
        asked = {each.path for each in self._runner.requests_of(given)}
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
        """Return the first candidate that still differs; None where there is none, or no time."""
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
        """Yield candidates without the input, then with simpler values of it."""
        if name not in given.inputs:
            return
        yield replace(given, inputs={each: value for each, value in given.inputs.items() if each != name})
        type_ = next((each.type for each in self._runner.node.inputs if each.name == name), None)
        for simpler in simpler_of(type_, given.inputs[name]):
            yield replace(given, inputs={**given.inputs, name: simpler})

    def _answers(self, given: Given, number: int) -> Iterator[Given]:
        """Yield candidates with a simpler completion of the same type."""
        if number >= len(given.answers):
            return
        answer = given.answers[number]
        if answer.failure is not None:
            return
        type_ = self._runner.type_at(answer.path)
        asked = next((each for each in self._runner.requests_of(given) if each.path == answer.path), None)
        if asked is not None and asked.effect == "state_transition":
            type_ = Enum(tuple(asked.fixed["from"].split(",")))
        if type_ is None:
            return
        for simpler in simpler_of(type_, answer.value):
            changed = replace(answer, value=simpler)
            yield replace(given, answers=(*given.answers[:number], changed, *given.answers[number + 1 :]))


def _simpler_times(given: Given) -> Iterator[Given]:
    if given.now is not None:
        for simpler in simpler_values(given.now):
            assert isinstance(simpler, datetime)
            yield replace(given, now=simpler)
