"""Check of the codes under `on_error`. Each must exist, be possible in the step, and be listed once."""

from __future__ import annotations

import re

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import ANY, CONTRACT_BROKEN, HTTP_CODE, own_codes, possible_codes_in
from vesper.language.ir.statements import own_blocks
from vesper.language.syntax import ast
from vesper.language.syntax.steps_to_ast import PARTS_OF_HANDLER
from vesper.values.generated.errors import ErrorCode

_STATUS = re.compile(r"(?:http|status)?[ _-]?([1-5][0-9][0-9]|[45]xx)", re.ASCII | re.IGNORECASE)


def check_codes(
    handlers: tuple[ast.Handler, ...],
    statement: ir.Statement,
    callees: dict[str, frozenset[str]],
    bag: DiagnosticBag,
) -> None:
    """Report duplicate codes, and codes that the statement cannot fail with."""
    if not handlers:
        return
    possible = own_codes(statement, callees.get(statement.node, ()) if isinstance(statement, ir.CallNode) else ())
    for block in own_blocks(statement):
        possible |= possible_codes_in(block, callees)
    seen: dict[str, Span] = {}
    for word in (word for handler in handlers for word in handler.codes):
        if word.text in seen:
            also = (Label(seen[word.text], "the first one"),)
            bag.error(Code.DUPLICATE_KEY, word.span, also=also, key=word.text)
        seen.setdefault(word.text, word.span)
        if word.text in PARTS_OF_HANDLER:
            help_ = _help_for_no_code(word.text, possible)
            expected, found = "a mapping of failures", f"`{word.text}`"
            bag.error(Code.WRONG_KIND, word.span, key="on_error", expected=expected, found=found, help=help_)
        elif not _can_happen(word.text, possible):
            help_ = help_for_code(word.text, possible | {ANY})
            bag.error(Code.CODE_CANNOT_HAPPEN, word.span, failure=word.text, help=help_)


def help_for_code(code: str, possible: set[str] | None = None) -> str:
    """Return help for a code that cannot happen. Without the possible codes, any code can."""
    names = sorted(possible or {*ErrorCode, ANY})
    status = _STATUS.fullmatch(code)
    if status is not None and "http_error" in names:
        return f"write `http_{status[1].lower()}`"
    if close := did_you_mean(code, names):
        return close
    if possible is None:
        return "docs/reference/errors.md lists the codes; an HTTP status is written `http_404`"
    return _listed(names)


def _listed(names: list[str]) -> str:
    listed = [f"{name} (a status: `http_404`)" if name == "http_error" else name for name in names]
    return f"it can fail with {', '.join(listed)}"


def _help_for_no_code(part: str, possible: set[str]) -> str:
    """Return help for a part of a handler in the place of its code."""
    first = next((name for name in ("not_found", "http_error") if name in possible), ANY)
    part = "return_error" if part in ("error_code", "message") else part
    body = f"{part}: …" if part != "return_error" else "return_error: {error_code: …, message: …}"
    return f"`on_error` needs the failure first: `{first}: {{{body}}}`; {_listed(sorted(possible | {ANY}))}"


def _can_happen(code: str, possible: set[str]) -> bool:
    if code == ANY:
        return bool(possible)
    if HTTP_CODE.fullmatch(code):
        return "http_error" in possible
    return code in possible or (code == CONTRACT_BROKEN and CONTRACT_BROKEN in possible)
