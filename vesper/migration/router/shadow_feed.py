"""Hands executions that Python led to the shadow queue, where the direct engine follows them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from vesper.engines.python_engine import PythonProgram
from vesper.migration.compare.noise import follow_with_check
from vesper.migration.compare.reports import Agreement, Disagreement, Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.router.context import RoutingContext
from vesper.migration.shadow.shadow_run import follow_transcript
from vesper.observe.spans import export_comparison

Agreed: TypeAlias = Callable[[Agreement, Transcript, bool], None]
"""Receives an execution that was followed and agreed, and whether it was drawn for a closer check."""


class ShadowFeed:
    """The route of a recorded execution of one node to the shadow queue and the node's state."""

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
        """Queue an execution that has ended.

        `execution` is its name in the journal; None without a journal. `is_timed` is False for an execution of the
        fast entry: it has its own times, and here the direct engine would start cold.
        """
        context = self._context
        if isinstance(found, Lost):
            context.live.report(found)
            return
        following = context.following(
            lambda: self._follow(found, took_ns, execution, is_chosen, is_timed), found, execution
        )
        if context.followers.is_closed and execution is None:
            # The extension found a difference while the process was closing; there is no other copy of it.
            report = following.follow()
            if report is not None:
                following.report(report)
        else:
            context.followers.put(following)

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

        began_ns = time.time_ns()
        report = follow_with_check(follow, transcript, execution)
        export_comparison(context.compiled.node.node_id, execution, began_ns, _difference(report))
        if not isinstance(report, Agreement):
            return report
        if self._agreed is not None:
            self._agreed(report, transcript, is_chosen)
        return replace(report, python_ns=python_ns) if is_timed else replace(report, python_ns=None, direct_ns=None)


def _difference(report: Report | None) -> tuple[str, str] | None:
    """Return place and kind of a difference, for its span."""
    match report:
        case Disagreement(difference):
            return difference.where, difference.kind
        case Fault():
            return "", "fault"
        case _:
            return None
