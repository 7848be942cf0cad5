"""Runtime of strands in generated code: members of `parallel`, and rounds in flight.

Strands run in turns, each in written order until it has ended or waits; the requests of all that wait are one `Wave`
(docs/spec/ir.md, Waves). Marks and memory are those of the strand until the statement ends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from vesper.kernels.raised import Raised
from vesper.kernels.runtime.flow import FAILURES, Asking, Request, Wave, counted
from vesper.kernels.runtime.meter import SKIPPED, ItemPrice, Meter, price_of_item
from vesper.values.prices import STRAND_BYTES

if TYPE_CHECKING:
    from vesper.kernels.runtime.trace import Mark

_Item = TypeVar("_Item")


class _Strand:
    """One strand: its generator while it is open, then its value or its failure."""

    __slots__ = ("asked", "failure", "marks", "memory", "steps", "value")

    def __init__(self) -> None:
        self.steps: Generator[Request | Wave, Any, Any] | None = None
        self.asked: Request | Wave | None = None
        self.value: Any = None
        self.failure: Exception | None = None
        self.marks: list[tuple[int, Any]] = []
        self.memory = 0

    def mark(self, index: int, value: Any) -> Any:
        self.marks.append((index, value))
        return value

    def begin(self, function: Callable[..., Any], arguments: tuple[object, ...]) -> None:
        try:
            found = function(*arguments)
            if isinstance(found, Generator):
                self.steps = found
                self.asked = found.send(None)
            else:
                self.value = found
        except StopIteration as end:
            self.value = end.value
        except FAILURES as failure:
            self.failure = failure

    def go_on(self, answers: Iterator[Any]) -> None:
        """Continue with the next answers: one for a request, a list for a wave."""
        assert self.steps is not None
        asked, self.asked = self.asked, None
        try:
            if isinstance(asked, Wave):
                self.asked = self.steps.send(list(islice(answers, len(asked.requests))))
            elif isinstance(answer := next(answers), Raised):
                self.asked = self.steps.throw(answer)
            else:
                self.asked = self.steps.send(answer)
        except StopIteration as end:
            self.value = end.value
        except FAILURES as failure:
            self.failure = failure


class _Strands:
    """The strands of one statement, in written order."""

    def __init__(self, meter: Meter | None, mark: Mark | None) -> None:
        self._meter = meter
        self._mark = mark
        self._all: list[_Strand] = []
        self._open: list[_Strand] = []
        self.has_failed = False

    @property
    def open_count(self) -> int:
        return len(self._open)

    def begin(self, function: Callable[..., Any], *arguments: object, price: ItemPrice | None = None) -> None:
        """Begin the next strand, which runs until it has ended or waits."""
        strand = _Strand()
        self._all.append(strand)
        given = arguments if self._mark is None else (*arguments, strand.mark)
        self._run(strand, lambda: strand.begin(function, given), price)
        if strand.asked is not None:
            self._open.append(strand)

    def wave(self) -> Wave | None:
        """Return the open requests of all strands; None where no strand is open."""
        found: list[Request] = []
        for strand in self._open:
            assert strand.asked is not None
            found += strand.asked.requests if isinstance(strand.asked, Wave) else (strand.asked,)
        return Wave(tuple(found)) if found else None

    def go_on(self, answers: Iterable[Any], price: ItemPrice | None = None) -> None:
        """Continue every open strand with its answers."""
        following = iter(answers)
        for strand in self._open:
            self._run(strand, lambda: strand.go_on(following), price)  # noqa: B023  # called at once
        self._open = [each for each in self._open if each.asked is not None]

    def join(self, failure: Exception | None = None) -> list[Any]:
        """Return the values of all strands, or raise a failure.

        The first failure in written order precedes the given one.
        """
        self._hand_on_marks()
        self._absorb()
        for strand in self._all:
            if strand.failure is not None:
                raise strand.failure
        if failure is not None:
            raise failure
        return [each.value for each in self._all]

    def abandon(self) -> None:
        """End the strands where the execution ends at once: their marks remain."""
        for strand in self._open:
            if strand.steps is not None:
                strand.steps.close()  # strands in it hand on their marks and their memory
        self._hand_on_marks()
        self._absorb()

    def _absorb(self) -> None:
        if self._meter is not None:
            self._meter.absorb(sum(each.memory for each in self._all))

    def _hand_on_marks(self) -> None:
        if self._mark is not None:
            for strand in self._all:
                for index, value in strand.marks:
                    self._mark(index, value)
                strand.marks = []

    def _run(self, strand: _Strand, step: Callable[[], None], price: ItemPrice | None) -> None:
        """Run a strand with its own count of memory. At its end, `_give_back` reduces the count."""
        meter = self._meter
        if meter is None:
            step()
        else:
            own = meter.swap_count(strand.memory)
            try:
                if strand.memory == 0:
                    meter.add_memory(STRAND_BYTES)
                step()
                if strand.asked is None:
                    _give_back(meter, strand, price)
            finally:
                strand.memory = meter.swap_count(own)
        self.has_failed |= strand.failure is not None


def _give_back(meter: Meter, strand: _Strand, price: ItemPrice | None) -> None:
    """Give back the memory of a strand that has ended.

    The collected value of a round stays charged; otherwise only the fixed size of the strand is given back.
    """
    if price is not None and strand.failure is None:
        size = price_of_item(price)(strand.value)
        meter.add_memory(size)
        meter.memory = size
    else:
        meter.memory -= STRAND_BYTES


def in_parallel(
    *members: Callable[..., Any], meter: Meter | None = None, mark: Mark | None = None
) -> Asking[list[Any]]:
    """Run strands together and return their values.

    The first failure in written order is raised after all strands have ended.
    """
    strands = _Strands(meter, mark)
    try:
        for member in members:
            strands.begin(member)
        while (wave := strands.wave()) is not None:
            strands.go_on((yield wave))
    except BaseException:
        strands.abandon()
        raise
    return strands.join()


def in_flight(
    width: int,
    maximum: int,
    items: Iterable[_Item],
    round_: Callable[..., Any],
    *,
    meter: Meter | None = None,
    price: ItemPrice | None = None,
    mark: Mark | None = None,
) -> Asking[list[Any]]:
    """Run a round for each item and return their values in order. At most `width` rounds are open at the same time."""
    strands = _Strands(meter, mark)
    following = iter(items)
    rounds = 0
    failure: Exception | None = None
    has_more = True
    before = 0 if meter is None else meter.memory
    try:
        while True:
            while has_more and strands.open_count < width and not strands.has_failed:
                if meter is not None:
                    meter.memory = before  # gives back what the condition of the last item took
                try:
                    item = next(following)
                    if item is SKIPPED:
                        continue
                    rounds = counted(rounds, maximum)
                except StopIteration:
                    has_more = False
                except FAILURES as raised:
                    has_more, failure = False, raised
                else:
                    strands.begin(round_, rounds, item, price=price)
            if (wave := strands.wave()) is None:
                break
            strands.go_on((yield wave), price)
    except BaseException:
        strands.abandon()
        raise
    if meter is not None:
        meter.memory = before
    return strands.join(failure)
