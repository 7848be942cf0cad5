"""Downloads of a node: source, generated Python, IR, and the drawing of its flow."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from vesper.compiler import Compiled
from vesper.dashboard.draw.flow import draw_flow
from vesper.dashboard.page import Context, NotFound, Unavailable, context_of
from vesper.values.model import printable


def compiled_node(context: Context) -> Compiled:
    """Return the checked node of a page. Raises `NotFound`, and `Unavailable` for a file with errors."""
    node = context.path["node"]
    compiled, bag = context.stores.nodes.compiled(node)
    if compiled is None:
        path = printable(str(context.stores.nodes.path(node)))
        first = next(iter(bag.sorted()), None)
        why = "its file has errors" if first is None else f"its file has errors: {printable(first.headline)}"
        raise Unavailable(printable(node), why, f"Correct the errors that `vesper check {path}` reports.")
    return compiled


def content_of(context: Context, kind: str) -> tuple[str, str, str]:
    """Return media type, ending and text of a download. Raises `NotFound`."""
    compiled = compiled_node(context)
    match kind:
        case "source":
            return "text/plain", "vsp", compiled.source.text
        case "python":
            from vesper.compiler.generated import module_text  # takes half a second

            return "text/x-python", "py", module_text(compiled)
        case "ir":
            return "application/json", "json", compiled.ir.decode()
        case "flow":
            return "image/svg+xml", "svg", draw_flow(compiled, is_file=True)
        case _:
            raise NotFound("there is no such download", "Use source, python, ir or flow.")


async def download(request: Request) -> Response:
    """Send a file about a node."""
    context = context_of(request)
    kind, ending, text = await run_in_threadpool(content_of, context, context.path["kind"])
    # The id of a checked node has only letters, digits and underscores.
    name = f'attachment; filename="{context.path["node"]}.{ending}"'
    return Response(text.encode(), media_type=kind, headers={"content-disposition": name})
