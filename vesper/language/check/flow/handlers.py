"""Check of the codes under `on_error`. Each must exist, be possible in the step, and be listed once."""

from __future__ import annotations

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import ANY, CONTRACT_BROKEN, HTTP_CODE, own_codes, possible_codes_in
from vesper.language.ir.statements import own_blocks
from vesper.language.syntax import ast


def check_codes(
    handlers: tuple[ast.Handler, ...],
    statement: ir.Statement,
    callees: dict[str, frozenset[str]],
    bag: DiagnosticBag,
) -> None:
    """Report duplicate codes, and codes with which the statement cannot fail."""
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
        if not _can_happen(word.text, possible):
            names = sorted(possible | {ANY})
            help_ = did_you_mean(word.text, names) or f"it can fail with {', '.join(names)}"
            bag.error(Code.CODE_CANNOT_HAPPEN, word.span, failure=word.text, help=help_)


def _can_happen(code: str, possible: set[str]) -> bool:
    if code == ANY:
        return bool(possible)
    if HTTP_CODE.fullmatch(code):
        return "http_error" in possible
    return code in possible or (code == CONTRACT_BROKEN and CONTRACT_BROKEN in possible)
