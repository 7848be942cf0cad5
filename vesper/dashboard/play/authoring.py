"""Endpoints for rules authors: tables as grids, inputs as a form, cases by a click."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.routing import BaseRoute

from vesper.compiler import Compiled
from vesper.compiler.reading import MAX_BYTES
from vesper.dashboard.page import Context
from vesper.dashboard.play.cases.changes import add_case, remove_case, rename_case
from vesper.dashboard.play.cases.listing import list_cases
from vesper.dashboard.play.editor_text import Faulty, compile_text, file_in
from vesper.dashboard.play.endpoint import endpoint, field
from vesper.dashboard.play.form.describe import check_inputs, describe_form, draw_inputs
from vesper.dashboard.play.grid.changes import edit_table
from vesper.dashboard.play.grid.read import read_grids
from vesper.dashboard.play.run import run_slot, trace_text
from vesper.dashboard.problem import Refused, TooLarge
from vesper.language.syntax.yaml.edits import EditRejected


@dataclass(frozen=True, slots=True)
class _EditorRequest:
    """The text of the editor, the file that it will become, and the other fields of a request."""

    file: Path
    text: str
    body: Mapping[str, Any]

    @property
    def compiled(self) -> Compiled:
        return compile_text(self.file, self.text)

    def name(self, key: str = "name") -> str:
        return field(self.body, key, str).strip()

    def optional(self, key: str) -> str | None:
        return None if self.body.get(key) is None else field(self.body, key, str)


def _author_endpoint(path: str, answer: Callable[[_EditorRequest], object], is_asked: bool = True) -> BaseRoute:
    """Return an endpoint for the text of the editor. An impossible edit is refused.

    If `is_asked` is false, errors of the text are a normal answer: the page sends such requests while its author types.
    """

    def checked(context: Context, body: Mapping[str, Any]) -> object:
        text = field(body, "text", str)
        if len(text.encode("utf-8", "replace")) > MAX_BYTES:
            raise TooLarge("the text is larger than 1 MiB", "Split the node, or put the rows of its tables in files.")
        try:
            return answer(_EditorRequest(file_in(context.stores.nodes.folder, field(body, "path", str)), text, body))
        except EditRejected as problem:
            what, _, remedy = str(problem).partition(": ")
            raise Refused(what, remedy) from None
        except Faulty as problem:
            if is_asked:
                raise
            return {"faulty": problem.what, "remedy": problem.remedy}

    return endpoint(path, checked)


def _tables(sent: _EditorRequest) -> object:
    with run_slot():
        return read_grids(sent.file, sent.text, sent.body.get("quick") is not True)


def _example(sent: _EditorRequest) -> object:
    with run_slot():
        return draw_inputs(sent.compiled, field(sent.body, "seed", int))


def _edit(sent: _EditorRequest) -> object:
    return edit_table(sent.text, field(sent.body, "table", int), field(sent.body, "change", dict))


def _add(sent: _EditorRequest) -> object:
    """Run the inputs again, and add that run as a case.

    The expectation is the outcome of that run, never data that the page sends.
    """
    compiled, answers = sent.compiled, sent.body.get("answers") or {}
    trace = trace_text(compiled, sent.body.get("inputs"), answers, sent.optional("case"), sent.optional("now"))
    return {"text": add_case(sent.text, compiled, trace, sent.name())}


ROUTES: tuple[BaseRoute, ...] = (
    _author_endpoint("/play/api/tables", _tables),
    _author_endpoint("/play/api/tables/edit", _edit),
    _author_endpoint("/play/api/form", lambda sent: describe_form(sent.compiled), False),
    _author_endpoint("/play/api/form/check", lambda sent: check_inputs(sent.compiled, sent.body.get("inputs")), False),
    _author_endpoint("/play/api/form/example", _example),
    _author_endpoint("/play/api/cases", lambda sent: list_cases(sent.compiled), False),
    _author_endpoint("/play/api/cases/add", _add),
    _author_endpoint("/play/api/cases/remove", lambda sent: {"text": remove_case(sent.text, sent.name())}),
    _author_endpoint(
        "/play/api/cases/rename",
        lambda sent: {"text": rename_case(sent.text, sent.compiled, sent.name(), sent.name("to"))},
    ),
)
