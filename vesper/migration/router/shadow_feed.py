"""Hands executions that Python led to the direct engine, which follows them off the response path."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from vesper.engines.python_engine import PythonProgram
from vesper.host.sizes import size_of
from vesper.migration.compare.noise import checked
from vesper.migration.compare.reports import Agreement, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.router.context import RoutingContext
from vesper.migration.shadow.shadow_queue import Following
from vesper.migration.shadow.shadow_run import follow_transcript

_SHORT_NS = 50_000
"""A pure node that takes less is followed at once: the queue would cost more."""

Agreed: TypeAlias = Callable[[Agreement, Transcript, bool], None]
"""Receives an execution that was followed and agreed, and whether it was drawn for a closer check."""


class ShadowFeed:
    """The end of a recorded execution of one node: follow it, and report to the node's state."""

    def __init__(self, context: RoutingContext, python: PythonProgram, agreed: Agreed | None = None) -> None:
        self._context = context
        self._python = python
        self._agreed = agreed

    def put(
        self,
        found: Transcript | Lost,
        took_ns: int | None,
        execution: str | None,
        is_chosen: bool = False,
        is_timed: bool = True,
    ) -> None:
        """Follow an execution that has ended, at once where it is short, or else by the queue.

        `execution` is its name in the journal; None without a journal. `is_timed` is False for an execution of the
        fast entry: it has its own times, and here the direct engine would start cold.
        """
        context = self._context
        if isinstance(found, Lost):
            context.live.report(found)
        elif execution is None and not context.rules.has_workers and (took_ns is None or took_ns < _SHORT_NS):
            begun = time.thread_time()
            report = self._follow(found, took_ns, None, is_chosen, is_timed)
            context.followers.admission.followed(time.thread_time() - begun)
            if report is not None:
                context.live.report(report)
        else:
            size = size_of(found.inputs) + sum(size_of(each.value) for each in found.exchanges)
            context.followers.put(
                Following(
                    lambda: self._follow(found, took_ns, execution, is_chosen, is_timed), context.live.report, size
                )
            )

    def _follow(
        self, transcript: Transcript, python_ns: int | None, execution: str | None, is_chosen: bool, is_timed: bool
    ) -> Report | None:
        context = self._context

        def follow() -> Report | None:
            return follow_transcript(
                context.direct,
                transcript,
                context.comparator,
                context.keyed.key,
                deadline=context.rules.deadline,
                execution=execution,
                is_plain=self._python.is_plain,
                is_sensitive=context.is_sensitive,
            )

        report = checked(follow, transcript, execution)
        if not isinstance(report, Agreement):
            return report
        if self._agreed is not None:
            self._agreed(report, transcript, is_chosen)
        return replace(report, python_ns=python_ns) if is_timed else replace(report, python_ns=None, direct_ns=None)
