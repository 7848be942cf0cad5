"""Answers to requests in the debugger: from a case, a trace, the command line or the Host.

The Host performs effects only on demand. A request is answered once: the second engine, or a session inside a called
node, receives the same completion.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from queue import SimpleQueue
from typing import Protocol

from vesper.compiler import Compiled
from vesper.engines.engine import Blocked, Completion, Done, Limits, Observer, Request
from vesper.engines.outcome import LimitHit, Outcome
from vesper.engines.registry import ENGINES
from vesper.host.driving import KNOWN_ANSWERS
from vesper.host.host import Host
from vesper.host.plans import plans_of
from vesper.host.prepared import Ran
from vesper.language.check.cases import Case
from vesper.trace.failure_codes import no_such_code
from vesper.values.inputs import accept_inputs
from vesper.values.json_forms import input_of_json
from vesper.values.json_mistake import JsonMistake
from vesper.values.model import ValueProblem, plain
from vesper.values.strict_json import forms_of_json
from vesper.values.times import SleepClock
from vesper.values.types import Type
from vesper.verify.inputs.responses import NOON, GeneratedResponses, complete_sleep


class Unanswered(Exception):
    """No source has an answer for this request. Nothing was performed."""

    def __init__(self, request: Request, is_recorded: bool = False, is_live: bool = False) -> None:
        path = plain_path(request.path)
        self.request = request
        self.why = f"`{path}` ({request.effect}) has no answer, and nothing was performed"
        # A recorded run has fixed inputs and is never performed again: no other case and no --live.
        begin = f"--answer {path}=JSON" if is_recorded else f"--case NAME, --answer {path}=JSON or --live"
        advice = "" if is_live else f"; or start with {begin}"
        super().__init__(f"{self.why}\n  answer it here: `answer JSON` or `fail CODE`{advice}")


class RunStopped(Exception):
    """The Host ended the run with this outcome: a denied capability or a limit."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.kind)
        self.outcome = outcome


class Answers(Protocol):
    def answer(self, request: Request) -> Completion | None:
        """Return the completion of a request; None if this source has none."""
        ...


def without_iterations(path: str) -> str:
    return "/".join(part.partition("[")[0] for part in path.split("/"))


def plain_path(path: str) -> str:
    """Return a path without the underscores that the compiler puts before names."""
    return "/".join(part.lstrip("_") for part in path.split("/"))


class AnswerBook:
    """All completions by request path. Sources are consulted in order, once per request."""

    def __init__(self, *sources: Answers, is_live: bool = False) -> None:
        self._sources = sources
        self._is_live = is_live
        self._is_recorded = any(isinstance(each, RecordedAnswers) for each in sources)
        self.given: dict[str, Completion] = {}

    def answer(self, request: Request) -> Completion:
        """Return the completion. Raises `Unanswered`, and `RunStopped` if the Host ends the run."""
        known = self.given.get(request.path)
        if known is None:
            for source in self._sources:
                known = source.answer(request)
                if known is not None:
                    break
        if known is None:
            raise Unanswered(request, self._is_recorded, self._is_live)
        self.given[request.path] = known
        return replace(known, id=request.id)

    def inside(self, path: str) -> AnswerBook:
        """Return the completions inside the node called at this path; the result has no other source."""
        prefix = f"{path}/"
        found = AnswerBook()
        found.given = {key[len(prefix) :]: each for key, each in self.given.items() if key.startswith(prefix)}
        return found


class CaseAnswers:
    """Answers of a case by path. A loop with more requests than answers repeats the last answer."""

    def __init__(self, case: Case) -> None:
        self._listed: dict[str, list[Completion]] = {}
        for each in case.effects:
            if each.is_due:
                continue
            completion = Completion(0, failure=each.fails) if each.fails else Completion(0, plain(each.returns))
            self._listed.setdefault(plain_path(each.path), []).append(completion)

    def answer(self, request: Request) -> Completion | None:
        path = plain_path(request.path)
        listed = self._listed.get(path) or self._listed.get(without_iterations(path))
        if not listed:
            return None
        return listed.pop(0) if len(listed) > 1 else listed[0]


class ManualAnswers:
    """Answers from the command line or the prompt, such as `call_stripe_api={"id": "ch_1", …}`."""

    def __init__(self, compiled: Compiled) -> None:
        self._types = GeneratedResponses(compiled)
        self._effects = {plain_path(path): plan.effect for path, plan in plans_of(compiled).requests.items()}
        self._answers: dict[str, Completion] = {}

    def set_answer(self, path: str, text: str) -> None:
        """Set the answer of a step from JSON. Raises `ValueError` if it has another type."""
        wanted = plain_path(path)
        type_ = self._type(wanted)
        try:
            value = input_of_json(type_, forms_of_json(text))
        except (JsonMistake, ValueError, ValueProblem) as problem:
            raise ValueError(f"`{wanted}` takes {type_} as JSON, not `{text}`: {problem}") from None
        # An engine would report a value of another type only as a bad response of the provider.
        _, problems = accept_inputs([(wanted, type_, None)], {wanted: value})
        if problems:
            places = [each.path.removeprefix(wanted).lstrip(".") for each in problems]
            kinds = [each.kind.value for each in problems]
            told = ", ".join(f"{place}: {kind}" if place else kind for place, kind in zip(places, kinds, strict=True))
            raise ValueError(f"`{wanted}` takes {type_} as JSON, not `{text}`: {told}")
        self._answers[wanted] = Completion(0, value)

    def set_value(self, path: str, value: object) -> None:
        """Set the answer of a step to a value that already has its type."""
        self._answers[plain_path(path)] = Completion(0, value)

    def copy(self) -> ManualAnswers:
        """Return a copy that can be changed independently."""
        found = copy.copy(self)
        found._answers = dict(self._answers)
        return found

    def fail(self, path: str, code: str) -> None:
        """Set a failure as the answer of a step. Raises `ValueError` for an impossible code."""
        wanted = plain_path(path)
        self._type(wanted)
        problem = no_such_code(self._effects[without_iterations(wanted)], wanted, code)
        if problem is not None:
            raise ValueError(problem)
        self._answers[wanted] = Completion(0, failure=code)

    def _type(self, path: str) -> Type:
        for written in (path, "/".join(f"_{part}" for part in path.split("/"))):
            try:
                return self._types.type_of(written)
            except KeyError:
                continue
        raise ValueError(f"no step `{path}` makes a request")

    def answer(self, request: Request) -> Completion | None:
        path = plain_path(request.path)
        return self._answers.get(path) or self._answers.get(without_iterations(path))


class Defaults:
    """Answers for effects that need none in tests: clock, random, UUID, secrets, transitions, sleeps.

    An entity starts in the first state that its transition accepts. A sleep ends at once, and moves the clock.
    """

    def __init__(self, now: datetime = NOON) -> None:
        self._clock = SleepClock(now)
        self._count = 0

    def answer(self, request: Request) -> Completion | None:
        match request.effect:
            case "clock_now":
                return Completion(0, self._clock.now)
            case "sleep":
                return complete_sleep(self._clock, request)
            case "random_integer":
                return Completion(0, request.arguments["min"])
            case "uuid_new":
                self._count += 1
                return Completion(0, f"00000000-0000-4000-8000-{self._count:012x}")
            case "secret_read":
                return Completion(0, f"secret:{request.fixed['name']}")
            case "state_transition":
                return Completion(0, request.fixed["from"].split(",")[0].strip())
            case _:
                return None


class RecordedAnswers:
    """Answers of a recorded run, and no others."""

    def __init__(self, exchanges: Mapping[str, Completion]) -> None:
        self._exchanges = exchanges

    def answer(self, request: Request) -> Completion | None:
        return self._exchanges.get(request.path)


_CANCELLED = LimitHit("cancelled")


class Live:
    """Real effects: a Host performs each request when the debugger passes it.

    Policies, grants and the journal apply as usual. The Host drives a `_DrivenProgram`, which makes the debugger's
    requests. A wait would suspend the run: `manual` answers it, a sleep ends at once, and the journal has the answer.
    """

    def __init__(
        self,
        host: Host,
        compiled: Compiled,
        engine: str,
        inputs: Mapping[str, object],
        now: datetime,
        manual: ManualAnswers,
    ) -> None:
        self._waits = AnswerBook(manual, Defaults(now), is_live=True)
        self._tasks: SimpleQueue[Request | Outcome] = SimpleQueue()
        self._results: SimpleQueue[Completion | Ran | BaseException] = SimpleQueue()
        self._ran: Ran | None = None
        self._problem: BaseException | None = None
        """Reason for a missing run: it could not start, or its journal failed."""
        # Only this execution has this program. Other executions of the prepared node, such as runs taken over from a
        # dead process, must keep the real program.
        prepared = replace(
            host.prepare(compiled, ENGINES[engine].load(compiled), engine),
            program=_DrivenProgram(compiled.semantic_hash, self._tasks, self._results),
        )
        self._thread = threading.Thread(
            target=self._work, args=(lambda: host.run(prepared, inputs, now),), name="vesper-debug", daemon=True
        )
        self._thread.start()

    def _work(self, run: Callable[[], Ran]) -> None:
        KNOWN_ANSWERS.set(_WaitAnswers(self._waits.given))
        try:
            self._results.put(run())
        except BaseException as problem:  # noqa: BLE001  # for the thread that waits
            self._results.put(problem)

    def answer(self, request: Request) -> Completion:
        if self._ran is not None:
            raise RunStopped(self._ran.outcome)
        if self._problem is not None:
            raise self._problem
        if request.effect_class == "wait":
            self._waits.answer(request)
        self._tasks.put(request)
        found = self._results.get()
        if isinstance(found, BaseException):
            self._problem = found  # the run has ended: no request is pending
            raise found
        if isinstance(found, Ran):
            self._ran = found
            raise RunStopped(found.outcome)
        return found

    def finish(self, outcome: Outcome | None) -> Ran | None:
        """End the run with an outcome; None cancels it, which the journal records."""
        if self._ran is None and self._problem is None:
            self._tasks.put(_CANCELLED if outcome is None else outcome)
            found = self._results.get()
            while isinstance(found, Completion):  # a completion of a request whose waiter was interrupted
                found = self._results.get()
            if isinstance(found, BaseException):
                self._problem = found
                raise found
            self._ran = found
        self._thread.join()
        return self._ran


class _WaitAnswers:
    """Answers to waits, for the Host and its journal."""

    def __init__(self, given: Mapping[str, Completion]) -> None:
        self._given = given

    def answer(self, request: Request) -> tuple[object, str | None, str, str] | None:
        found = self._given.get(request.path)
        return None if found is None else (found.result, found.failure, "answered in the debugger", "debugger")

    def rename(self, request: Request) -> str | None:
        return None


class _DrivenProgram:
    """A program whose executions make the requests that the debugger hands over."""

    def __init__(
        self,
        semantic_hash: str,
        tasks: SimpleQueue[Request | Outcome],
        results: SimpleQueue[Completion | Ran | BaseException],
    ) -> None:
        self._hash = semantic_hash
        self._tasks = tasks
        self._results = results

    @property
    def semantic_hash(self) -> str:
        return self._hash

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        raise ValueError("the puppet is only started, never called")

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> _DrivenProgram:
        return self

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        for completion in completions:
            self._results.put(completion)
        task = self._tasks.get()
        return Blocked((task,)) if isinstance(task, Request) else Done(task, ())
