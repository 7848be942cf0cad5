"""Comparison of the ways of one node: collects inputs, runs every way on a chunk of them, counts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from vesper.verify.differential.ways.way import Answer, Given, Subject, Way, WayMaker

CHUNK = 50
"""Inputs that a table or a list of calls has at most."""


class WaysComparison:
    """The ways of one node."""

    def __init__(self, subject: Subject, makers: Sequence[WayMaker], counts: dict[str, int]) -> None:
        """`counts` receives the number of compared inputs of each way."""
        self._subject = subject
        self._ways = [way for make in makers for way in make(subject)]
        self._waiting: list[Given] = []
        self._counts = counts

    def add(self, given: Given) -> None:
        if self._ways:
            self._waiting.append(given)

    @property
    def is_due(self) -> bool:
        return len(self._waiting) >= CHUNK

    def differences(self) -> Iterator[tuple[Way, Answer]]:
        """Run the ways on the collected inputs, and yield what differs."""
        waiting, self._waiting = self._waiting, []
        for way in self._ways if waiting else ():
            for answer in way.answers(self._select(way, waiting)):
                self._counts[way.name] = self._counts.get(way.name, 0) + 1
                if answer.differs:
                    yield way, answer

    def _select(self, way: Way, waiting: list[Given]) -> list[Given]:
        if way.share == 1:
            return waiting
        chance = random.Random(f"{self._subject.seed} {way.name} {waiting[0].number}")
        count = max(1, len(waiting) // way.share)
        return sorted(chance.sample(waiting, count), key=lambda each: each.number)
