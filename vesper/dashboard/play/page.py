"""The page of the playground: the node that it opens, and the nodes to choose from."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.dashboard.access.caller import Role
from vesper.dashboard.page import Context, Page, Parameter
from vesper.dashboard.play.save import Opened, new_node, open_file
from vesper.repository.starter import STARTERS

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""The editor positions its lines by style attributes, and draws squiggles as data images."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A node that can be opened."""

    node: str
    path: str


@dataclass(frozen=True, slots=True)
class Play:
    """The playground with one node, or the list of nodes to open."""

    folder: str
    choices: tuple[Choice, ...]
    opened: Opened | None
    starters: tuple[str, ...] = tuple(STARTERS)


def read(context: Context) -> Play:
    """Open the file that the query names.

    By `node`, an id; by `path`; or by `new`, the name of a node that does not exist.
    """
    context.caller.require(Role.AUTHOR)
    nodes = context.stores.nodes
    folder = nodes.folder
    paths = nodes.paths()
    choices = tuple(Choice(node, path.relative_to(folder).as_posix()) for node, path in sorted(paths.items()))
    opened = None
    if (name := context.text("new")) is not None:
        starter = context.choice("type", tuple(STARTERS)) or next(iter(STARTERS))
        opened = new_node(folder, name, starter)
    elif (node := context.text("node")) is not None:
        opened = open_file(folder, nodes.path(node).relative_to(folder).as_posix())
    elif (path := context.text("path")) is not None:
        opened = open_file(folder, path)
    return Play(str(folder), choices, opened)


PAGE = Page(
    name="play",
    path="/play",
    title="Playground",
    read=read,
    template="play/page.html",
    summary="A node as text, table and flow, to edit, run and save.",
    menu="Playground",
    parameters=(
        Parameter("node", "text", "Id of the node to open."),
        Parameter("path", "text", "Path of the file to open, below the folder of nodes."),
        Parameter("new", "text", "Name of a new node, without its version."),
        Parameter("type", "text", "Type of the new node.", tuple(STARTERS)),
    ),
    policy=POLICY,
)
