"""Verification: runs of the verifier, covered branches, disagreements and proofs."""

from __future__ import annotations

from vesper.dashboard.action import Action
from vesper.dashboard.page import Page, Parameter, Topic
from vesper.dashboard.pages.verification.runs import read_verification

PAGES = (
    Page(
        "verification",
        "/verification",
        "Verification",
        read_verification,
        "verification/page.html",
        "Show runs of `vesper verify`, branches that no input covered, disagreements, and proofs that are stale.",
        frozenset({Topic.FILES}),
        "Verification",
        (Parameter("page", "integer", "Number of the page of runs, from 1."),),
    ),
)
ACTIONS: tuple[Action, ...] = ()
