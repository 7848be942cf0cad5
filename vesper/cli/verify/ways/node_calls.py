"""Ways of Python callers: `node.call`, `node(…)`, `node.map`, and `node.start`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vesper.api.error_info import ErrorInfo
from vesper.api.explain import KnownEnding
from vesper.api.node import Node
from vesper.api.remote_exceptions import BY_KIND, RemoteException, Stopped
from vesper.engines.outcome import ContractBroken, EngineFault, Outcome, Returned
from vesper.verify.differential.ways.way import Answer, Given, Subject, Way

_EXPLAINED_SHARE = 50
"""One in this many broken clauses is explained."""
_START_SHARE = 10
_NOTE = "these were the inputs {} of `map`, counted from 0"


@dataclass(frozen=True, slots=True)
class LoadedNode:
    """A node without effects, loaded on each form of the direct engine."""

    subject: Subject
    nodes: tuple[Node, ...]

    def node(self, number: int) -> Node:
        """Return the node for the input of this number; the forms alternate."""
        return self.nodes[number % len(self.nodes)]

    @property
    def takes_now(self) -> bool:
        return self.subject.compiled.node.type != "function"

    def start(self, given: Given) -> dict[str, Any]:
        """Return the keyword with the start of a call, for a node that has one."""
        return {"now": self.subject.now(given)} if self.takes_now else {}

    def shared_start(self, given: Sequence[Given]) -> datetime | None:
        """Return the one start of several executions."""
        return self.subject.now(given[0]) if self.takes_now else None


def load_node(subject: Subject) -> LoadedNode:
    """Return the node as `vesper.load` makes it of each form."""
    nodes = [Node(subject.compiled, program, name, None, ()) for name, program in subject.direct.items()]
    return LoadedNode(subject, tuple(nodes))


class Call(Way):
    """`node.call`: a dict of inputs to a dict of outputs, or an exception."""

    name = "call"

    def __init__(self, loaded: LoadedNode) -> None:
        self._loaded = loaded

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        for each in given:
            call, start = self._loaded.node(each.number).call, self._loaded.start(each)
            found = call_outcome(self._loaded.subject, each, lambda: call(dict(each.inputs), **start))  # noqa: B023  # called here
            yield Answer(each, found, each.done.outcome)


class KeywordCall(Way):
    """`node(…)` with keywords; one call in three has one dict."""

    name = "node"

    def __init__(self, loaded: LoadedNode) -> None:
        self._loaded = loaded

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        for each in given:
            node, start = self._loaded.node(each.number // 2), self._loaded.start(each)
            outcome = node(dict(each.inputs), **start) if each.number % 3 == 0 else node(**each.inputs, **start)
            if outcome.error is None:
                found: Outcome = Returned(outcome.value or {})
            else:
                found = outcome_of_info(self._loaded.subject, each, each.done.outcome, outcome.error)
            yield Answer(each, found, each.done.outcome)


class Map(Way):
    """`node.map`: all inputs that return at once, and each other input after one that returns."""

    name = "map"

    def __init__(self, loaded: LoadedNode) -> None:
        self._loaded = loaded

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        loaded = self._loaded
        now = loaded.shared_start(given)
        node = loaded.node(given[0].number)
        wanted = [loaded.subject.expect(each, each.inputs, now) for each in given]
        fine = [place for place, outcome in enumerate(wanted) if isinstance(outcome, Returned)]
        results = self._map_outcomes(node, [given[place] for place in fine], [wanted[place] for place in fine], now)
        for place, found in zip(fine, results, strict=True):
            yield Answer(given[place], found, wanted[place])
        for place, outcome in enumerate(wanted):
            if not isinstance(outcome, Returned):
                places = [*fine[:1], place]
                many, outcomes = [given[each] for each in places], [wanted[each] for each in places]
                yield Answer(given[place], self._map_outcomes(node, many, outcomes, now)[-1], outcome)

    def _map_outcomes(
        self, node: Node, many: Sequence[Given], wanted: Sequence[Outcome], now: datetime | None
    ) -> list[Outcome]:
        """Run `map`, and return an outcome for each input.

        An exception is that of the inputs that its note names.
        """
        try:
            return [Returned(each) for each in node.map([dict(each.inputs) for each in many], now=now)]
        except RemoteException as error:
            for place in range(len(many)):
                if _NOTE.format(place) in getattr(error, "__notes__", ()):
                    ended = outcome_of_info(self._loaded.subject, many[place], wanted[place], error.info)
                    rest: list[Outcome] = [EngineFault(f"`map` ended at the inputs {place}")] * len(many)
                    return [*rest[:place], ended, *rest[place + 1 :]]
            return [EngineFault(f"`map` ended without a place: {error}")] * len(many)


class Start(Way):
    """`node.start`: an execution whose requests its caller answers."""

    name = "start"
    share = _START_SHARE

    def __init__(self, loaded: LoadedNode) -> None:
        self._loaded = loaded

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        subject = self._loaded.subject
        for each in given:
            respond = subject.responses.responder(f"{subject.seed} {each.number}", each.inputs)
            execution = self._loaded.node(each.number).start(dict(each.inputs), now=subject.now(each))
            for _ in each.done.requests:
                request = execution.request
                if request is None:
                    break
                completion = respond(request)
                if completion.failure is None:
                    execution.answer(completion.result)
                else:
                    execution.fail(completion.failure)
            outcome = execution.outcome
            if outcome is None:
                assert execution.request is not None
                found: Outcome = EngineFault(f"requests {execution.request.path}, where the reference ends")
            elif outcome.error is None:
                found = Returned(outcome.value or {})
            else:
                found = outcome_of_info(subject, each, each.done.outcome, outcome.error)
            yield Answer(each, found, each.done.outcome)


def call_outcome(subject: Subject, given: Given, call: Callable[[], Mapping[str, Any]]) -> Outcome:
    """Call, and return the outcome; an exception of the wrong class is an engine fault."""
    try:
        return Returned(call())
    except RemoteException as error:
        outcome = outcome_of_info(subject, given, given.done.outcome, error.info)
        is_refusal = KnownEnding(subject.compiled, outcome, {}).is_refusal
        expected = BY_KIND.get("refused" if is_refusal else outcome.kind, Stopped)
        return outcome if type(error) is expected else EngineFault(f"raises {type(error).__name__} for {outcome}")


def is_explained(given: Given) -> bool:
    """Return whether this input's outcome is explained: the texts of a broken clause take long."""
    return given.number % _EXPLAINED_SHARE == 0 or not isinstance(given.done.outcome, ContractBroken)


def outcome_of_info(subject: Subject, given: Given, wanted: Outcome, info: ErrorInfo) -> Outcome:
    """Return the outcome of an end; another kind or code before its explanation is a fault."""
    found = info.kind, info.code
    ending = KnownEnding(subject.compiled, wanted, {})
    if found == (ending.kind, ending.code) and not is_explained(given):
        return wanted
    outcome = info.outcome
    ending = KnownEnding(subject.compiled, outcome, {})
    if found != (ending.kind, ending.code):
        return EngineFault(f"ends with {' '.join(found)}, explained as {outcome}")
    return outcome
