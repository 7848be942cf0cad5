"""The fleet, its milestones, and the orders of an operator."""

from __future__ import annotations

from vesper.dashboard.page import Page, Parameter
from vesper.dashboard.pages.fleet.actions import ACTIONS
from vesper.dashboard.pages.fleet.fleet import NOT_ROUTED, SORTS, read_fleet
from vesper.dashboard.pages.fleet.milestones import read_milestones
from vesper.dashboard.stores import Topic
from vesper.migration.control.modes import LADDER

PAGES = (
    Page(
        "fleet",
        "/",
        "Fleet",
        read_fleet,
        "fleet/page.html",
        "Every node with its mode, confidence, traffic and times; those that need a person come first.",
        frozenset({Topic.MIGRATION, Topic.JOURNAL, Topic.FILES}),
        "Fleet",
        (
            Parameter("mode", "text", "Only nodes in this mode.", (*(each.value for each in LADDER), NOT_ROUTED)),
            Parameter("needs", "text", "Only nodes that need a person.", ("yes",)),
            Parameter("name", "text", "Only nodes whose id contains this text."),
            Parameter("sort", "text", "Order of the nodes.", SORTS),
            Parameter("page", "integer", "Page of 50 nodes, from 1."),
        ),
    ),
    Page(
        "milestones",
        "/milestones",
        "Milestones",
        read_milestones,
        "fleet/milestones.html",
        "Goals of the migration and the modes of all nodes over time.",
        frozenset({Topic.MIGRATION}),
        "Milestones",
    ),
)
__all__ = ["ACTIONS", "PAGES"]
