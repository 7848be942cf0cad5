"""The overview of one node."""

from __future__ import annotations

from vesper.dashboard.page import Page, Parameter
from vesper.dashboard.pages.node.node import read_node_page
from vesper.dashboard.stores import Topic

PAGES = (
    Page(
        "node",
        "/nodes/{node}",
        "{node}",
        read_node_page,
        "node/page.html",
        "One node: confidence over time, paths, contracts, epochs, settings and history.",
        frozenset({Topic.MIGRATION, Topic.JOURNAL, Topic.FILES}),
        parameters=(
            Parameter("epoch", "text", "Another epoch than the one written last."),
            Parameter("page", "integer", "Page of 50 lines of the history, from 1."),
        ),
    ),
)
