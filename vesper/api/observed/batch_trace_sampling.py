"""Sampling of traces for the other entries of a node: JSON text, lists and tables.

A text needs no copy: it cannot change, and is parsed when its trace is made. Of many inputs in one call, the same share
is sampled as of single calls; where the budget is smaller, each is equally likely. They share the duration of the call
evenly.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from vesper.kernels.raised import BadInput
from vesper.trace.drawing import how_many, places
from vesper.values.inputs import NotInputs

if TYPE_CHECKING:
    from vesper.api.observed.trace_sampling import CallSampling
    from vesper.engines.direct_engine import Batches

_PLACE = re.compile(r"these were the inputs ([0-9]+) of `map`, counted from 0")


def sample_json(run: Callable[..., bytes], sampling: CallSampling) -> Callable[..., bytes]:
    """Return `run_json` of the direct engine with sampling.

    `now` is the start time, for a node that has one.
    """
    from vesper.api.json_calls import NEVER_BEGAN

    def run_with_sampling(text: bytes, /, now: datetime | None = None) -> bytes:
        is_sampled = sampling.is_sampled()
        given = (text,) if now is None else (text, now)
        if not (is_sampled or sampling.is_watched()):
            return run(*given)
        began = time.time_ns()
        answer = run(*given)
        if not answer.startswith(NEVER_BEGAN):
            sampling.queue_trace(partial(_parse, sampling, text), now, began, time.time_ns(), is_sampled)
        return answer

    return run_with_sampling


def _parse(sampling: CallSampling, text: bytes) -> Mapping[str, Any]:
    from vesper.api.input_conversion import inputs_of_json

    return inputs_of_json(sampling.inputs, text).inputs


def sample_many(run: Callable[[list[Any]], list[Any]], sampling: CallSampling) -> Callable[[list[Any]], list[Any]]:
    """Return `map` of an engine with sampling."""

    def map_with_sampling(many: list[Any]) -> list[Any]:
        found = draw_places(sampling, len(many))
        if not found:
            return run(many)
        kept = []
        for place, is_sampled in found:
            try:
                kept.append((place, sampling.snapshot(many[place]), is_sampled))
            except (TypeError, ValueError):  # as in a call
                sampling.sampler.counts.lost += 1
        began = time.time_ns()
        ran = len(many)
        try:
            return run(many)
        except Exception as error:
            # The rows after the one that raised did not run; that row ran unless its inputs were refused.
            ran = _failed_place(error) + (not isinstance(error, BadInput | NotInputs))
            raise
        finally:
            each = (time.time_ns() - began) // max(ran, 1)
            for place, inputs, is_sampled in kept:
                if place < ran:
                    sampling.queue_trace(inputs, None, began + place * each, began + (place + 1) * each, is_sampled)

    return map_with_sampling


def _failed_place(error: Exception) -> int:
    """Return the place of the inputs at which a `map` raised.

    The engine notes it on the exception; 0 without a note.
    """
    notes = [_PLACE.fullmatch(each) for each in getattr(error, "__notes__", ())]
    return next((int(each[1]) for each in reversed(notes) if each), 0)


class Rows:
    """The rows of a batch that have traces."""

    def __init__(self, sampling: CallSampling, now: datetime | None) -> None:
        self._sampling = sampling
        self._now = now
        self._drawn: dict[int, bool] = {}

    def subscribe(self, batches: Batches) -> None:
        """Subscribe to the rows that these batches run."""
        batches.look(self._choose, self._queue_traces)

    def _choose(self, rows: int) -> Sequence[int]:
        self._drawn = dict(draw_places(self._sampling, rows))
        return list(self._drawn)

    def _queue_traces(self, ran: list[tuple[int, dict[str, Any]]], rows: int, began: int, took: int) -> None:
        each = took // rows
        for place, inputs in ran:
            start = began + place * each
            self._sampling.queue_trace(inputs, self._now, start, start + each, self._drawn[place])


def draw_places(sampling: CallSampling, rows: int) -> list[tuple[int, bool]]:
    """Return the places that have a trace, each with whether it was drawn.

    While there are breakpoints of running services, every row that the budget allows is evaluated.
    """
    sampler = sampling.sampler
    share = sampler.settings.sample
    count = how_many(rows, share) if share else 0
    kept = min(count, max(sampler.left, 0))
    sampler.counts.passed += count - kept
    if not sampling.is_watched():
        return [(place, True) for place in places(rows, kept)] if kept else []
    looked_at = min(rows, max(kept, sampler.room()))
    sampler.counts.passed += rows - looked_at
    found = places(rows, looked_at)
    sampled = {found[each] for each in places(looked_at, kept)}
    return [(place, place in sampled) for place in found]
