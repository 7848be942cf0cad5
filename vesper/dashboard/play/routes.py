"""Endpoints of the editor: run, code, flow, files and saving."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.routing import BaseRoute, WebSocketRoute

from vesper.compiler import Compiled
from vesper.dashboard.draw.flow import draw_flow
from vesper.dashboard.page import Context
from vesper.dashboard.play.bridge import language_server
from vesper.dashboard.play.code import Code, code_of
from vesper.dashboard.play.editor_text import compile_text, file_in, path_in
from vesper.dashboard.play.endpoint import endpoint, field
from vesper.dashboard.play.run import ENGINE_LABELS, run_slot, run_text
from vesper.dashboard.play.save import Opened, open_file, save
from vesper.dashboard.problem import BadRequest

BOTH = "both"


def _folder(context: Context) -> Path:
    return context.stores.nodes.folder


def _compile_body(context: Context, body: Mapping[str, Any]) -> Compiled:
    return compile_text(file_in(_folder(context), field(body, "path", str)), field(body, "text", str))


def _run(context: Context, body: Mapping[str, Any]) -> object:
    case, now = body.get("case"), body.get("now")
    if not isinstance(case, str | None) or not isinstance(now, str | None):
        raise BadRequest("`case` and `now` are texts", "Reload the page.")
    engine = body.get("engine", BOTH)
    engines = tuple(ENGINE_LABELS.values())
    if engine not in (BOTH, *engines):
        raise BadRequest("`engine` is none that can run a node", f"Use one of {', '.join((BOTH, *engines))}.")
    answers = body.get("answers") or {}
    if not isinstance(answers, dict):
        raise BadRequest("`answers` is no object", "Reload the page.")
    chosen = engines if engine == BOTH else (engine,)
    return run_text(_compile_body(context, body), body.get("inputs"), answers, case, chosen, now)


def _code(context: Context, body: Mapping[str, Any]) -> Code:
    with run_slot():
        return code_of(_compile_body(context, body), field(body, "kind", str))


def _flow(context: Context, body: Mapping[str, Any]) -> Mapping[str, str]:
    with run_slot():
        return {"svg": draw_flow(_compile_body(context, body))}


def _open(context: Context, body: Mapping[str, Any]) -> Opened:
    """Read a file of the project, for a tab that only shows it."""
    path = path_in(_folder(context), field(body, "uri", str))
    if path is None:
        raise BadRequest("the file is outside the folder of nodes", "Open it with another editor.")
    return open_file(_folder(context), path)


def _save(context: Context, body: Mapping[str, Any]) -> Opened:
    """Write the text, or with `preview` return the file on disk for the difference."""
    path = field(body, "path", str)
    if body.get("preview") is True:
        return open_file(_folder(context), path)
    sha256 = None if body.get("sha256") is None else field(body, "sha256", str)
    return save(_folder(context), path, field(body, "text", str), sha256)


ROUTES: tuple[BaseRoute, ...] = (
    endpoint("/play/api/run", _run),
    endpoint("/play/api/code", _code),
    endpoint("/play/api/flow", _flow),
    endpoint("/play/api/open", _open),
    endpoint("/play/api/save", _save),
    WebSocketRoute("/play/lsp", language_server),
)
