"""Quick fixes: every fix that `vesper check --fix` knows, and all safe ones of a file at once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lsprotocol import types

from vesper.compiler.check_result import Checked
from vesper.compiler.fixing import Check, repair, safe_fixes, with_proved_fixes
from vesper.language.diagnostics.diagnostic import Diagnostic
from vesper.language.diagnostics.fix import Fix, Safety
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.repairs import with_fix
from vesper.lsp.diagnostics import to_lsp
from vesper.lsp.features.tables import align_actions
from vesper.lsp.positions import to_range, to_span
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View

_QUICK, _ALL = types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll
_REWRITE = types.CodeActionKind.RefactorRewrite


def register(server: VesperServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([_QUICK, _ALL, _REWRITE]))
    def _(params: types.CodeActionParams) -> list[types.CodeAction]:
        view, uri = server.view(params.text_document.uri), params.text_document.uri
        actions = _quick_fixes(view, uri, params.range) if _is_wanted(_QUICK, params.context) else []
        has_safe = any(each.is_preferred for each in actions)
        if (params.context.only and _is_wanted(_ALL, params.context)) or has_safe:
            actions += _fix_all(view, uri)
        return actions + (align_actions(view, uri, params.range) if _is_wanted(_REWRITE, params.context) else [])


def _is_wanted(kind: str, context: types.CodeActionContext) -> bool:
    return not context.only or any(kind == each or kind.startswith(f"{each}.") for each in context.only)


def _quick_fixes(view: View, uri: str, range_: types.Range) -> list[types.CodeAction]:
    source, span = view.source, to_span(view.source, range_)
    diagnostics = [
        found
        for each in _diagnostics(view)
        if each.primary.span.start <= span.end and each.primary.span.end >= span.start
        if (found := with_fix(source, each)).fix is not None
    ]
    by_fix: dict[Fix, list[Diagnostic]] = {}
    for each in with_proved_fixes(source, diagnostics, _check_in(view)):
        if each.fix is not None:
            by_fix.setdefault(each.fix, []).append(each)
    return [
        types.CodeAction(
            fix.description[0].upper() + fix.description[1:],
            _QUICK,
            [to_lsp(source, uri, each) for each in fixed],
            fix.safety is Safety.SAFE,
            edit=types.WorkspaceEdit(
                {uri: [types.TextEdit(to_range(source, edit.span), edit.replacement) for edit in fix.edits]}
            ),
        )
        for fix, fixed in by_fix.items()
    ]


def _fix_all(view: View, uri: str) -> list[types.CodeAction]:
    check = _check_in(view)
    diagnostics = _diagnostics(view)
    if not safe_fixes(with_fix(view.source, each) for each in diagnostics):
        return []
    repaired = repair(view.source, diagnostics, check)
    if not repaired.applied:
        return []
    # Fixes keep the number of lines, so lines can be compared one by one.
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", each.text) for each in (view.source, repaired.source))
    edits = [
        types.TextEdit(types.Range(types.Position(line, 0), types.Position(line + 1, 0)), new)
        for line, (old, new) in enumerate(zip(before, after, strict=True))
        if old != new
    ]
    count = len(repaired.applied)
    title = f"Apply {count} unambiguous fix{'es' if count > 1 else ''} to this file"
    return [types.CodeAction(title, _ALL, edit=types.WorkspaceEdit({uri: edits}))]


def _diagnostics(view: View) -> Sequence[Diagnostic]:
    checked = view.collection.check_now(view.path)
    return () if checked is None else checked.diagnostics


def _check_in(view: View) -> Check:
    """Return a check of other texts of the file, among the texts of the editor."""

    def check(source: SourceFile) -> Checked:
        found = view.collection.check_now(view.path, source.text)
        assert found is not None, "the view is of a file of the collection"
        return found

    return check
