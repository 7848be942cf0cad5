"""Tabs of a node: its flow with evidence, its source beside the generated Python, its profile."""

from __future__ import annotations

from typing import Final

from starlette.routing import Route

from vesper.dashboard.page import Page, Parameter
from vesper.dashboard.pages.flow.download import download
from vesper.dashboard.pages.flow.drawing import read_flow
from vesper.dashboard.pages.flow.profile import read_profile
from vesper.dashboard.pages.flow.source import read_source
from vesper.dashboard.stores import Topic

PAGES: Final = (
    Page(
        name="flow",
        path="/nodes/{node}/flow",
        title="Flow of {node}",
        read=read_flow,
        template="flow/flow.html",
        summary="The flow of a node as a drawing, with the evidence and the runs of each path.",
        topics=frozenset({Topic.MIGRATION, Topic.FILES}),
        parameters=(
            Parameter("path", "text", "Letter of a path to highlight"),
            Parameter("page", "integer", "Page of the list of paths"),
        ),
    ),
    Page(
        name="source",
        path="/nodes/{node}/source",
        title="Source of {node}",
        read=read_source,
        template="flow/source.html",
        summary="The source of a node and the Python generated from it, with the lines that belong together.",
        topics=frozenset({Topic.FILES}),
    ),
    Page(
        name="profile",
        path="/nodes/{node}/profile",
        title="Profile of {node}",
        read=read_profile,
        template="flow/profile.html",
        summary="Time of each step of a node on each engine, on recorded answers.",
        parameters=(
            Parameter("run", "boolean", "1 times the node now, with at most two seconds of processor time"),
            Parameter("case", "text", "Name of the case to time"),
            Parameter("trace", "text", "Id of the trace or journalled run to time"),
        ),
    ),
)
ACTIONS: Final = ()
ROUTES: Final = (Route("/nodes/{node}/download/{kind}", download),)
