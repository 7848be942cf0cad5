"""What effects are answered with while somebody debugs: a case, a recorded run, what the command line says; and only on
demand the real world.

A request is answered once. Whoever asks for the same again (the second engine, a called node that is looked into) is
told the same.
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
from vesper.host.host import Host, Ran
from vesper.host.plans import plans_of
from vesper.language.check.cases import Case
from vesper.trace.failure_codes import no_such_code
from vesper.values.inputs import accept_inputs
from vesper.values.json_forms import forms_of_json, input_of_json
from vesper.values.json_mistake import JsonMistake
from vesper.values.model import ValueProblem, plain
from vesper.values.types import Type
from vesper.verify.inputs.responses import NOON, GeneratedResponses


class Unanswered(Exception):
    """Nobody said what this request is answered with. Nothing was performed."""

    def __init__(self, request: Request, is_recorded: bool = False) -> None:
        path = plain_path(request.path)
        self.request = request
        self.why = f"nobody says what `{path}` ({request.effect}) is answered with, and nothing was performed"
        # A recorded run has its own inputs, and is not performed again: there is no other case, and no --live.
        begin = f"--answer {path}=JSON" if is_recorded else f"--case NAME, --answer {path}=JSON or --live"
        super().__init__(f"{self.why}\n  answer it here: `answer JSON` or `fail CODE`; or begin with {begin}")


class Stopped(Exception):
    """The Host gave the execution up with this outcome: a capability that is not granted, a limit."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.kind)
        self.outcome = outcome


class Answers(Protocol):
    def answer(self, request: Request) -> Completion | None:
        """What came of a request; None where nobody says."""
        ...


def without_iterations(path: str) -> str:
    return "/".join(part.partition("[")[0] for part in path.split("/"))


def plain_path(path: str) -> str:
    """The path as people write it: without the underscores that the compiler puts before a name."""
    return "/".join(part.lstrip("_") for part in path.split("/"))


class Book:
    """Every answer that was given, by the path of its request. Those that were said beforehand come first."""

    def __init__(self, *sources: Answers) -> None:
        self._sources = sources
        self._is_recorded = any(isinstance(each, Recorded) for each in sources)
        self.given: dict[str, Completion] = {}

    def answer(self, request: Request) -> Completion:
        """Raises `Unanswered`, and `Stopped` where the Host ends the run."""
        known = self.given.get(request.path)
        if known is None:
            for source in self._sources:
                known = source.answer(request)
                if known is not None:
                    break
        if known is None:
            raise Unanswered(request, self._is_recorded)
        self.given[request.path] = known
        return replace(known, id=request.id)

    def inside(self, path: str) -> Book:
        """What the node that is called at this path was answered; nothing else is ever asked for."""
        prefix = f"{path}/"
        found = Book()
        found.given = {key[len(prefix) :]: each for key, each in self.given.items() if key.startswith(prefix)}
        return found


class CaseAnswers:
    """As a case of the node lists them: by path, and where a loop asks more often than listed, the last one again."""

    def __init__(self, case: Case) -> None:
        self._listed: dict[str, list[Completion]] = {}
        for each in case.effects:
            completion = Completion(0, failure=each.fails) if each.fails else Completion(0, plain(each.returns))
            self._listed.setdefault(plain_path(each.path), []).append(completion)

    def answer(self, request: Request) -> Completion | None:
        path = plain_path(request.path)
        listed = self._listed.get(path) or self._listed.get(without_iterations(path))
        if not listed:
            return None
        return listed.pop(0) if len(listed) > 1 else listed[0]


class Said:
    """What the command line, or the person at the prompt, says: `call_stripe_api={"id": "ch_1", …}`."""

    def __init__(self, compiled: Compiled) -> None:
        self._types = GeneratedResponses(compiled)
        self._effects = {plain_path(path): plan.effect for path, plan in plans_of(compiled).requests.items()}
        self._said: dict[str, Completion] = {}

    def say(self, path: str, text: str) -> None:
        """Raises `ValueError` where the text is no value of what the step gives."""
        wanted = plain_path(path)
        type_ = self._type(wanted)
        try:
            value = input_of_json(type_, forms_of_json(text))
        except (JsonMistake, ValueError, ValueProblem) as problem:
            raise ValueError(f"`{wanted}` is answered with {type_}, as JSON; `{text}` is none: {problem}") from None
        # An engine would take one of another type for a provider that answers badly, and say no more than that.
        _, problems = accept_inputs([(wanted, type_, None)], {wanted: value})
        if problems:
            places = [each.path.removeprefix(wanted).lstrip(".") for each in problems]
            kinds = [each.kind.value for each in problems]
            told = ", ".join(f"{place}: {kind}" if place else kind for place, kind in zip(places, kinds, strict=True))
            raise ValueError(f"`{wanted}` is answered with {type_}, as JSON; `{text}` is none: {told}")
        self._said[wanted] = Completion(0, value)

    def put(self, path: str, value: object) -> None:
        """The same with a value that is one of what the step gives."""
        self._said[plain_path(path)] = Completion(0, value)

    def copied(self) -> Said:
        """The same answers, for whoever wants to change them and may give that up."""
        found = copy.copy(self)
        found._said = dict(self._said)
        return found

    def fail(self, path: str, code: str) -> None:
        """Raises `ValueError` where the step cannot fail so."""
        wanted = plain_path(path)
        self._type(wanted)
        problem = no_such_code(self._effects[without_iterations(wanted)], wanted, code)
        if problem is not None:
            raise ValueError(problem)
        self._said[wanted] = Completion(0, failure=code)

    def _type(self, path: str) -> Type:
        for written in (path, "/".join(f"_{part}" for part in path.split("/"))):
            try:
                return self._types.type_of(written)
            except KeyError:
                continue
        raise ValueError(f"no step `{path}` asks for anything")

    def answer(self, request: Request) -> Completion | None:
        path = plain_path(request.path)
        return self._said.get(path) or self._said.get(without_iterations(path))


class Defaults:
    """What needs no answer of anybody, as in tests: clock, random, uuid, secrets; and an entity is in the first state
    that a transition takes."""

    def __init__(self, now: datetime = NOON) -> None:
        self._now = now
        self._count = 0

    def answer(self, request: Request) -> Completion | None:
        match request.effect:
            case "clock_now":
                return Completion(0, self._now)
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


class Recorded:
    """The answers of a recorded run, and no others."""

    def __init__(self, exchanges: Mapping[str, Completion]) -> None:
        self._exchanges = exchanges

    def answer(self, request: Request) -> Completion | None:
        return self._exchanges.get(request.path)


_CANCELLED = LimitHit("cancelled")


class Live:
    """The real world: a Host performs each request when the debugger goes past it, under its policies, granted and
    journalled as ever. It drives a program that has no logic of its own and asks for what the debugger hands it."""

    def __init__(
        self, host: Host, compiled: Compiled, engine: str, inputs: Mapping[str, object], now: datetime
    ) -> None:
        self._tasks: SimpleQueue[Request | Outcome] = SimpleQueue()
        self._results: SimpleQueue[Completion | Ran | BaseException] = SimpleQueue()
        self._ran: Ran | None = None
        self._problem: BaseException | None = None
        """Why there is no run: it could not be begun, or its journal broke."""
        # The puppet runs this execution alone. What a Host has prepared runs all others of the node, too: those that it
        # takes over from a process that died would ask for what this debugger does.
        prepared = replace(
            host.prepare(compiled, ENGINES[engine].load(compiled), engine),
            program=_Puppet(compiled.semantic_hash, self._tasks, self._results),
        )
        self._thread = threading.Thread(
            target=self._work, args=(lambda: host.run(prepared, inputs, now),), name="vesper-debug", daemon=True
        )
        self._thread.start()

    def _work(self, run: Callable[[], Ran]) -> None:
        try:
            self._results.put(run())
        except BaseException as problem:  # noqa: BLE001  # for the thread that waits
            self._results.put(problem)

    def answer(self, request: Request) -> Completion:
        if self._ran is not None:
            raise Stopped(self._ran.outcome)
        if self._problem is not None:
            raise self._problem
        self._tasks.put(request)
        found = self._results.get()
        if isinstance(found, BaseException):
            self._problem = found  # the run is over: nobody waits for anything more
            raise found
        if isinstance(found, Ran):
            self._ran = found
            raise Stopped(found.outcome)
        return found

    def finish(self, outcome: Outcome | None) -> Ran | None:
        """Says how the execution ended; without an outcome it is given up, which the journal says as well."""
        if self._ran is None and self._problem is None:
            self._tasks.put(_CANCELLED if outcome is None else outcome)
            found = self._results.get()
            while isinstance(found, Completion):  # of a request at which somebody was interrupted, who does not wait
                found = self._results.get()
            if isinstance(found, BaseException):
                self._problem = found
                raise found
            self._ran = found
        self._thread.join()
        return self._ran


class _Puppet:
    """A program whose executions ask for what they are handed."""

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
        raise ValueError("it is started, and asks")

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> _Puppet:
        return self

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        for completion in completions:
            self._results.put(completion)
        task = self._tasks.get()
        return Blocked((task,)) if isinstance(task, Request) else Done(task, ())
