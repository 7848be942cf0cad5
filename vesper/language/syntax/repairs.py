"""Fixes for diagnostics: edits derived from a diagnostic and the text around it.

Takes a source file and one diagnostic; returns a `Fix` or None and writes nothing. A fix marked safe is safe as far as
its text shows; `vesper.compiler.fixing` checks the repaired node before it accepts the fix. Repairs that depend on the
author's intention are not offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, Diagnostic, DiagnosticBag
from vesper.language.diagnostics.fix import Edit, Fix, Safety, apply_edits
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.diagnostics.suggest import single_suggestion
from vesper.language.syntax.expression_slot import expression_slot, quote_scalar
from vesper.language.syntax.yaml.reader import UNDER_INDENTED, missing_spaces, read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ENUM_TYPE = re.compile(r"(?<=type: )(?P<type>(?P<set>set<)?enum\[[^\[\]{}'\"\n]*\](?(set)>))(?= *[,}])")
_TAB_INDENT = re.compile(r"^ *\t[ \t]*", re.MULTILINE)
_TAB_WIDTHS = (2, 4, 8)
_SIGNS = frozenset("=<>!&|+-*/~^%:?")


def with_fix(source: SourceFile, diagnostic: Diagnostic) -> Diagnostic:
    """Return the diagnostic with its fix, if there is one."""
    find = _FINDERS.get(diagnostic.code, _suggestion)
    return replace(diagnostic, fix=find(source, diagnostic))


def _safe(description: str, *edits: Edit) -> Fix:
    return Fix(description, Safety.SAFE, edits)


# -- misspelt names -------------------------------------------------------------------------------


def _suggestion(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Return a fix with the single close name. Never safe, because a close name may mean something else."""
    meant = single_suggestion(diagnostic.help)
    span = diagnostic.primary.span
    written = source.slice(span)
    if len(written) > 2 and written[0] == written[-1] and written[0] in "'\"":
        span, written = Span(span.start + 1, span.end - 1), written[1:-1]
    if meant is None or not _WORD.fullmatch(meant) or not _WORD.fullmatch(written):
        return None
    return Fix(f"write `{meant}`", Safety.SUGGESTED, (Edit(span, meant),))


# -- signs of other languages ---------------------------------------------------------------------


def _character(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    span = diagnostic.primary.span
    written = source.slice(span)
    if written == "=":
        return _sign(source, span, "==", longest=1, may_follow="-")
    if written == "&":
        return _sign(source, span, "AND", longest=2, may_follow="!-")
    if written == "|":
        return _sign(source, span, "OR", longest=2, may_follow="!-")
    if written == "!":
        return _sign(source, span, "NOT", longest=1, may_precede="&|")
    return _comment_in_string(source, span) if written in ("'", '"') else None


def _sign(
    source: SourceFile, span: Span, word: str, *, longest: int, may_precede: str = "", may_follow: str = ""
) -> Fix | None:
    """Return a fix that replaces a sign by its operator. Returns None where the sign is part of a longer one."""
    text, sign = source.text, source.text[span.start]
    start, end = span.start, span.end
    while start > 0 and text[start - 1] == sign and end - start <= longest:
        start -= 1
    while end < len(text) and text[end] == sign and end - start <= longest:
        end += 1
    before, after = text[start - 1 : start], text[end : end + 1]
    if end - start > longest or before in _SIGNS - {*may_precede} or after in _SIGNS - {*may_follow}:
        return None
    replacement = word
    if word[0].isalpha():
        replacement = f"{' ' * _touches(before)}{word}{' ' * (after != '' and not after.isspace())}"
    return _safe(f"write `{word}`", Edit(Span(start, end), replacement))


def _touches(before: str) -> bool:
    """Return whether a word written after this character would join it. After `(` or a sign no space is needed."""
    return before != "" and not before.isspace() and before not in "(&|"


def _tag(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Fix `!flagged` at the start of an expression. YAML reads it as a tag."""
    start = diagnostic.primary.span.start
    slot = expression_slot(source, start)
    is_negation = re.match(r"![A-Za-z_(]", source.text[start : start + 2], re.ASCII)
    return _negation(start) if slot is not None and slot.start == start and is_negation else None


def _negation(start: int) -> Fix:
    return _safe("write `NOT`", Edit(Span(start, start + 1), "NOT "))


# -- what YAML cut --------------------------------------------------------------------------------


def _comment_in_string(source: SourceFile, span: Span) -> Fix | None:
    """Fix ` #` inside a string of a plain scalar. YAML reads it as a comment."""
    slot = expression_slot(source, span.start)
    if slot is None or source.text[slot.start] in "'\"" or " #" not in source.slice(slot):
        return None
    return _quotes(source, slot)


def _mapping_for_text(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Fix a clause with `: `. YAML reads it as a key and a value."""
    span = diagnostic.primary.span
    slot = expression_slot(source, span.start)
    if slot is None or slot.start != span.start or slot.end < span.end or not _has_colon(source.slice(slot)):
        return None
    return _quotes(source, slot) if source.text[slot.start] not in "'\"[{" else None


def _not_yaml(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    at = diagnostic.primary.span.start
    if UNDER_INDENTED in diagnostic.headline:
        edits = (Edit(Span(offset, offset), " " * count) for offset, count in missing_spaces(source).items())
        return _safe("indent the lines inside quotes and brackets", *edits)
    slot = expression_slot(source, at)
    if slot is not None and slot.start <= at < slot.end:
        text = source.slice(slot)
        if text.startswith("!("):
            return _negation(slot.start)
        if text[0] in "'\"" or (_has_colon(text) and text[0] not in "[{!&*"):
            return _quotes(source, slot)
    return _enum_in_braces(source, at) or _tabs(source, at)


def _has_colon(text: str) -> bool:
    return ": " in text or text.endswith(":")


def _quotes(source: SourceFile, slot: Span) -> Fix:
    return _safe("put the expression in quotes", Edit(slot, quote_scalar(source.slice(slot))))


def _enum_in_braces(source: SourceFile, at: int) -> Fix | None:
    """Fix `{type: enum[a, b]}`. Inside braces YAML reads the bracket as a list."""
    line, _ = source.position(at)
    start = source.offset(line, 1)
    for match in _ENUM_TYPE.finditer(source.line_text(line)):
        if match.start() <= at - start < match.end():
            span = Span(start + match.start(), start + match.end())
            return _safe("put the type in quotes", Edit(span, f"'{match['type']}'"))
    return None


# -- tabs -----------------------------------------------------------------------------------------


def _tabs(source: SourceFile, at: int) -> Fix | None:
    """Return a fix that replaces tabs in all indentation by spaces.

    None unless every tab width that YAML can read gives the same tree.
    """
    tabs = list(_TAB_INDENT.finditer(source.text))
    if not any(match.start() <= at <= match.end() for match in tabs):
        return None
    found: dict[str, tuple[Edit, ...]] = {}
    for width in _TAB_WIDTHS:
        edits = tuple(Edit(Span(*match.span()), match[0].expandtabs(width)) for match in tabs)
        tree = _tree(SourceFile(source.path, apply_edits(source.text, edits)))
        if tree is not None:
            found.setdefault(_shape(tree), edits)
    if len(found) != 1:
        return None
    return _safe("indent with spaces", *next(iter(found.values())))


def _tree(source: SourceFile) -> Tree | None:
    try:
        return read_yaml(DiagnosticBag(source))
    except CheckingStopped:
        return None


def _shape(tree: Tree) -> str:
    """Return the content of a tree without spans, as text."""
    if isinstance(tree, Scalar):
        return repr(tree.text)
    if isinstance(tree, Mapping):
        return "{" + ",".join(f"{key.text!r}:{_shape(value)}" for key, value in tree.entries) + "}"
    return "[" + ",".join(_shape(item) for item in tree.items) + "]"


_FINDERS: dict[Code, Callable[[SourceFile, Diagnostic], Fix | None]] = {
    Code.BAD_CHARACTER: _character,
    Code.INVALID_YAML: _not_yaml,
    Code.WRONG_KIND: _mapping_for_text,
    Code.YAML_FEATURE: _tag,
}
"""Finder by code; other diagnostics may have a name to suggest."""
