"""Executions: the search of recorded runs, and one run over time."""

from __future__ import annotations

from typing import Any

from vesper.dashboard.action import Action
from vesper.dashboard.page import Page, Parameter, Topic
from vesper.dashboard.pages.executions.listing import read_runs
from vesper.dashboard.pages.executions.run import read_run
from vesper.trace.search import Result

PAGES: tuple[Page[Any], ...] = (
    Page(
        "executions",
        "/executions",
        "Executions",
        read_runs,
        "executions/list.html",
        "Recorded runs, newest first: executions of the journal and stored traces.",
        frozenset({Topic.JOURNAL, Topic.TRACES}),
        "Executions",
        (
            Parameter("node", "text", "Id of a node, or a name for all its versions."),
            Parameter("result", "text", "Result of the run.", tuple(Result)),
            Parameter("since", "text", "Started at or after: `2h`, `2026-11-15`, or an RFC 3339 time."),
            Parameter("until", "text", "Started before, in the same forms."),
            Parameter("key", "text", "Idempotency key of the caller or of a request."),
            Parameter("id", "text", "First characters of the id."),
            Parameter("before", "text", "Start of a later page, from `next`."),
        ),
    ),
    Page(
        "execution",
        "/executions/{execution}",
        "Run {execution}",
        read_run,
        "executions/run.html",
        "One run: its steps over time, requests, attempts and waits, inputs, contracts and outcome.",
        frozenset({Topic.JOURNAL, Topic.TRACES}),
    ),
)
ACTIONS: tuple[Action, ...] = ()
