"""Divergences: the list, one divergence, and the actions of a person on it."""

from __future__ import annotations

from vesper.dashboard.action import Action, Role
from vesper.dashboard.page import Page, Topic
from vesper.dashboard.pages.divergences.closing import close
from vesper.dashboard.pages.divergences.detail import read_detail
from vesper.dashboard.pages.divergences.keeping import keep_case, read_case
from vesper.dashboard.pages.divergences.listing import PARAMETERS, read_list
from vesper.dashboard.pages.divergences.shrinking import read_shrinking, start_shrinking
from vesper.dashboard.pages.divergences.stored import DETAIL

PAGES = (
    Page(
        "divergences",
        "/divergences",
        "Divergences",
        read_list,
        "divergences/list.html",
        "List differences between the engines on live traffic, last seen first.",
        frozenset({Topic.MIGRATION}),
        "Divergences",
        PARAMETERS,
    ),
    Page(
        "divergence",
        DETAIL,
        "Divergence {fingerprint} of {node}",
        read_detail,
        "divergences/detail.html",
        "Show one divergence: both sides, inputs, path, history and the smallest case.",
        frozenset({Topic.MIGRATION, Topic.FILES}),
    ),
    Page(
        "divergence_shrink",
        DETAIL + "/shrink",
        "Shrinking {fingerprint}",
        read_shrinking,
        "divergences/shrink.html",
        "Show the progress of the search for the smallest case.",
    ),
    Page(
        "divergence_case",
        DETAIL + "/case",
        "Case of {fingerprint}",
        read_case,
        "divergences/case.html",
        "Show the change of the node's file that keeps the divergence as a case.",
    ),
)
ACTIONS = (
    Action(
        "shrink_divergence",
        DETAIL + "/shrink",
        Role.OPERATOR,
        start_shrinking,
        "Search for the smallest inputs and answers on which the engines still differ. Nothing is performed.",
        needs_reason=False,
    ),
    Action(
        "keep_case",
        DETAIL + "/case",
        Role.AUTHOR,
        keep_case,
        "Write the case into the file of the node. It fails on the direct engine until the defect is fixed.",
    ),
    Action(
        "close_divergence",
        DETAIL + "/close",
        Role.OPERATOR,
        close,
        "Close it after review: it no longer blocks promotion, and opens again when it occurs again.",
    ),
)
