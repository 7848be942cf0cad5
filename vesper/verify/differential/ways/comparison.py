"""Comparison of the ways of one node: collects inputs, runs every way on a chunk of them, counts."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence

from vesper.verify.differential.beat import Beat, ignore_beat
from vesper.verify.differential.ways.way import Answer, Given, Subject, Way, WayMaker

CHUNK = 100
"""Inputs that a table or a list of calls has at most."""


class _AnnouncedInputs(list[Given]):
    """Inputs of a way, each announced by a beat. A way that reads a whole chunk first runs under its last beat."""

    def __init__(self, given: Sequence[Given], way: Way, beat: Beat) -> None:
        super().__init__(given)
        self._way = way
        self._beat = beat

    def __iter__(self) -> Iterator[Given]:
        for each in super().__iter__():
            self._beat("way", each.number, self._way.name, each.inputs)
            yield each


class WaysComparison:
    """The ways of one node."""

    def __init__(
        self, subject: Subject, makers: Sequence[WayMaker], counts: dict[str, int], beat: Beat = ignore_beat
    ) -> None:
        """Create the ways. `counts` receives the number of compared inputs of each; `beat` is called for each input."""
        self._subject = subject
        self._beat = beat
        self._ways: list[Way] = []
        for make in makers:
            beat("load", 0, make.__name__, None)
            self._ways += make(subject)
        self._waiting: list[Given] = []
        self._counts = counts

    def begin(self, counts: dict[str, int], left_out: Collection[str]) -> None:
        """Use the counts of another report, and leave out the ways of these names."""
        self._counts = counts
        self._ways = [each for each in self._ways if each.name not in left_out]

    def add(self, given: Given) -> None:
        if self._ways:
            self._waiting.append(given)

    @property
    def is_due(self) -> bool:
        return len(self._waiting) >= CHUNK

    def differences(self) -> Iterator[tuple[Way, Answer]]:
        """Run the ways on the collected inputs, and yield the answers that differ."""
        waiting, self._waiting = self._waiting, []
        for way in self._ways if waiting else ():
            for answer in way.answers(_AnnouncedInputs(self._select(way, waiting), way, self._beat)):
                self._counts[way.name] = self._counts.get(way.name, 0) + 1
                if answer.differs:
                    yield way, answer

    def _select(self, way: Way, waiting: list[Given]) -> list[Given]:
        if way.share == 1:
            return waiting
        chance = random.Random(f"{self._subject.seed} {way.name} {waiting[0].number}")
        count = max(1, len(waiting) // way.share)
        return sorted(chance.sample(waiting, count), key=lambda each: each.number)
