"""Counts of calls without effects that enter Python. Entries of the extension count by themselves.

A process on the python engine alone loads no extension, and counts only where something else has loaded it: a server,
a Host, the direct engine, or `vesper.observe.metrics`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vesper.api.description import describe
from vesper.engines.engine import FastEntry, ModalProgram, Program
from vesper.engines.outcome import Outcome, Returned

if TYPE_CHECKING:
    from vesper.compiler import Compiled


def path_of(program: Program) -> str | None:
    """Return the label `path` of a program's calls; None for a routed node, which counts them itself."""
    if isinstance(program, ModalProgram):
        return None
    return program.execution_path if isinstance(program, FastEntry) else "direct"


def counted_call(
    program: Program, compiled: Compiled, call: Callable[..., dict[str, Any]]
) -> Callable[..., dict[str, Any]]:
    """Return a function that counts calls of an entry."""
    path = path_of(program)
    if path is None or not _is_counting():
        return call
    from vesper._direct import CountedCall

    counted: Callable[..., dict[str, Any]] = CountedCall(call, describe(compiled).id, path).call
    return counted


def count_outcome(program: Program, node_id: str, outcome: Outcome) -> Outcome:
    """Count a call of the engine that went through no entry."""
    if _is_counting():
        from vesper.observe.error_labels import outcome_label
        from vesper.observe.metrics import count
        from vesper.values.generated.metrics import EXECUTIONS_ERRORS, EXECUTIONS_TOTAL

        path = path_of(program)
        if path is not None:
            count(EXECUTIONS_TOTAL, (node_id, path))
        if not isinstance(outcome, Returned):
            count(EXECUTIONS_ERRORS, (node_id, outcome_label(outcome)))
    return outcome


def _is_counting() -> bool:
    return "vesper._direct" in sys.modules
