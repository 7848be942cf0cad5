"""The walk through strands: members of a `parallel`, and rounds of a loop in flight (docs/spec/ir.md, Waves).

An engine makes the requests of all strands in waves and joins their marks when the statement ends. The walk takes all
requests first, and then follows each strand, in written order, with its own requests and the next marks.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from vesper.debug.event_reader import Computing, EventReader, ExecutionOver, Failure, Walking, WalkLost
from vesper.debug.stops import CompletionEvent, EndEvent, MarkEvent, RequestEvent, Stop
from vesper.debug.strand_requests import StrandRequests
from vesper.engines.engine import Completion, Engine, Request
from vesper.engines.outcome import DeclaredError, Failed, Returned
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import expressions_of
from vesper.trace.expressions import Expressions, Name
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import Value, in_order
from vesper.values.types import ArrayOf, MapOf, SetOf, Type


class _StrandEnds:
    """The ends of the strands of a statement: the first failure, and whether the execution ended."""

    def __init__(self) -> None:
        self._failure: Failure | None = None
        self._is_over = False

    @property
    def has_any(self) -> bool:
        return self._is_over or self._failure is not None

    @contextmanager
    def note_end(self) -> Iterator[None]:
        """Note how a strand ends, so that the others are walked too."""
        try:
            yield
        except Failure as failure:
            self._failure = self._failure or failure
        except ExecutionOver:
            self._is_over = True

    def raise_first(self) -> None:
        if self._is_over:
            raise ExecutionOver
        if self._failure is not None:
            raise self._failure


class StrandWalk(EventReader):
    """The part of the walk that follows strands."""

    def __init__(
        self, node: ir.Node, engine: Engine, expressions: Expressions, inputs: Mapping[str, object], now: datetime
    ) -> None:
        super().__init__(node, engine, expressions, inputs, now)
        self._iterations = ""
        """Iterations of the loops around the statement, as in the path of a request."""
        self._strands = StrandRequests()
        self._strand_depth = 0
        """Number of strands around the statement, one inside the other."""

    def _block(self, block: ir.Block, depth: int) -> Walking:
        raise NotImplementedError

    def _resume(self, stop: Stop, at: ir.Expression | None) -> None:
        raise NotImplementedError

    def _locals(
        self, loop: ir.Loop, item: Value | tuple[Value, Value] | None, state: Mapping[int, Value]
    ) -> dict[tuple[str, str], Name]:
        raise NotImplementedError

    def _gather(self, where: ir.Expression | None) -> Generator[None, None, list[bool]]:
        """Take the requests of all strands of a statement; return the results of `where` for its rounds.

        Inside another strand there are none: the outermost statement has them all.
        """
        selected: list[bool] = []
        while True:
            event = yield from self._peek()
            if isinstance(event, RequestEvent | CompletionEvent):
                self._strands.add(event)
            elif isinstance(event, MarkEvent) and where is not None and self._is_part(event.index, where):
                self._note(event)
                if event.index == where.index:
                    selected.append(event.value is True)
            else:
                return selected
            self._waiting.popleft()

    def _members(self, parallel: ir.Parallel, depth: int) -> Walking:
        outside, iterations = self._names, self._iterations
        shown, ends = outside, _StrandEnds()
        for member in parallel.members:
            self._names, self._iterations = outside, iterations
            with ends.note_end(), self._inside_strand():
                yield from self._block(member, depth + 1)
            shown = shown | self._names
        self._iterations = iterations
        ends.raise_first()
        self._names = shown

    @contextmanager
    def _inside_strand(self) -> Iterator[None]:
        self._strand_depth += 1
        try:
            yield
        finally:
            self._strand_depth -= 1

    def _failure(self, roots: Sequence[ir.Expression]) -> Exception:
        found = super()._failure(roots)
        event = self._waiting[-1] if self._waiting else None
        was_cut = isinstance(event, EndEvent) and not isinstance(event.outcome, Returned | DeclaredError | Failed)
        # An execution that ends amid a turn leaves each strand where it was.
        return ExecutionOver() if self._strand_depth and was_cut and isinstance(found, WalkLost) else found

    def _rounds(self, loop: ir.Loop, items: Sequence[Value | tuple[Value, Value]], stop: Stop, depth: int) -> Computing:
        """Walk the rounds of a loop in flight. After one has failed, only those that had begun follow."""
        selected = yield from self._gather(loop.where)
        taken = items if loop.where is None else [each for each, holds in zip(items, selected, strict=False) if holds]
        collected: list[Value] = []
        outside, iterations, ends = self._names, self._iterations, _StrandEnds()
        for count, item in enumerate(taken):
            self._names, self._iterations = outside | self._locals(loop, item, {}), f"{iterations}[{count}]"
            if ends.has_any and not self._has_begun(loop):
                break
            with ends.note_end():
                if count == loop.max:
                    raise Failure(ErrorCode.LOOP_LIMIT.value)
                with self._inside_strand():
                    yield from self._block(loop.body, depth + 1)
                    assert loop.collect is not None  # as the checker requires
                    self._resume(stop, loop.collect)
                    collected.append((yield from self._read_marked(loop.collect)))
        self._iterations = iterations
        ends.raise_first()
        result: dict[str, Value] = {"collected": collected}
        return result

    def _has_begun(self, loop: ir.Loop) -> bool:
        """Return whether the round of this iteration has left a request, or a mark that comes next."""
        event = self._waiting[0] if self._waiting else None
        parts = [*expressions_of(loop.body), *(() if loop.collect is None else (loop.collect,))]
        is_next = isinstance(event, MarkEvent) and any(self._is_part(event.index, each) for each in parts)
        return is_next or self._strands.has_round(self._iterations)

    def _take_request(self, request: ir.Request) -> Generator[None, None, tuple[Request | None, Completion | None]]:
        """Return the request that a statement has made, and in a strand its completion."""
        if self._strand_depth:
            return self._strands.take(f"{request.name}{self._iterations}") or (None, None)
        event = yield from self._peek()
        if not isinstance(event, RequestEvent):
            return None, None
        self._waiting.popleft()
        return event.request, None

    def _completion(self) -> Generator[None, None, Completion]:
        event = yield from self._take()
        if not isinstance(event, CompletionEvent):
            raise WalkLost
        return event.completion


def items_of(value: Value, type_: Type) -> Sequence[Value | tuple[Value, Value]]:
    match type_, value:
        case ArrayOf(), list() | tuple():
            return value
        case SetOf(element), set() | frozenset():
            return in_order(element, value)
        case MapOf(key), dict():
            entries: dict[Any, Value] = dict(value)
            return [(each, entries[each]) for each in in_order(key, entries)]
        case _:
            raise WalkLost
