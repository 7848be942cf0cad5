"""The MCP server of a project: each node is a tool, run by the Host with the grants of the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from vesper import __version__
from vesper.config.grants import matches_node
from vesper.mcp.callers import caller_of
from vesper.mcp.node_calls import NodeCalls, failed
from vesper.mcp.node_schemas import tool_of
from vesper.repository.locate import NodeNotFound, id_of, is_library_file, locate, node_files
from vesper.serve.nodes import ENGINES, NothingServed, is_hosted
from vesper.serve.table import scopes_of
from vesper.serve.work import load_files

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from vesper.api.node import Node
    from vesper.host.host import Host
    from vesper.migration.router.routes import Routes

_TREES = "supervisor"
"""Type of a node that is a tree of agents and no function."""


def load_tools(names: Sequence[str], root: Path, host: Host, routes: Routes | None, engine: str) -> list[Node]:
    """Load the nodes that become tools: those named (ids, files, folders, patterns), by default all under `root`.

    Raises `NothingServed` where nothing is found, `VesperError` for a node with errors.
    """
    found = load_files(_find(names, root), [root], host, routes, ENGINES[engine])
    tools = [each for each in found if each.type != _TREES]
    if not tools:
        raise NothingServed(f"no node under `{root}` can be a tool: name files or folders, or the folder with --nodes")
    for each in tools:
        if is_hosted(each):
            prepared = each._prepare(host)
            if not prepared.refused:
                host.check_equipped(prepared.compiled.node, prepared.plans)
    return sorted(tools, key=lambda node: node.served_as)


def _find(names: Sequence[str], root: Path) -> list[Path]:
    try:
        if not names:
            files = node_files([root])
        else:
            files = [path for name in names for path in _named(name, root)]
    except NodeNotFound as problem:
        raise NothingServed(str(problem)) from None
    return [each for each in dict.fromkeys(files) if not is_library_file(each)]


def _named(name: str, root: Path) -> list[Path]:
    if Path(name).is_dir():
        return node_files([Path(name)])
    if "*" not in name:
        return [locate(name, root)]
    found = [each for each in node_files([root]) if matches_node((name,), id_of(each))]
    if not found:
        raise NodeNotFound(f"no node under `{root}` has an id like `{name}`")
    return found


def node_server(nodes: Sequence[Node], host: Host) -> tuple[Server[Any], NodeCalls]:
    """Return the server of these nodes, and the calls that end with it."""
    calls = NodeCalls(host)
    by_name = {each.served_as: each for each in nodes}
    tools = [tool_of(each) for each in nodes]

    async def list_tools(context: ServerRequestContext[Any], _page: PaginatedRequestParams | None) -> ListToolsResult:
        caller = caller_of(context.request)
        seen = [each for each in tools if not caller.lacks(scopes_of(by_name[each.name], host.config.serve))]
        return ListToolsResult(tools=seen)

    async def call_tool(
        context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        node, caller = by_name.get(params.name), caller_of(context.request)
        if node is None:
            raise MCPError(INVALID_PARAMS, f"no tool `{params.name}`")
        lacks = caller.lacks(scopes_of(node, host.config.serve))
        if lacks:
            return failed(f"the key of `{caller.name}` lacks the scope {', '.join(lacks)}")
        return await calls.call(node, params, context, caller)

    server: Server[Any] = Server(
        "vesper",
        version=__version__,
        instructions='Each tool is a node of business logic. Decimals are texts, such as "9.99".',
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    return server, calls
