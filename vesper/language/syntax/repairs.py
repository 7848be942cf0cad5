"""Fixes for diagnostics: from a diagnostic and the text around it to the edits that repair it.

In: a source file and one diagnostic. Out: a `Fix`, or None. Nothing is written, and a fix that is called safe here is
safe as far as its text shows; `vesper.cli.check.fixing` checks the repaired node before it believes it. A repair that
would
need to know what the author thinks is not here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, Diagnostic, DiagnosticBag
from vesper.language.diagnostics.fix import Edit, Fix, Safety, apply_edits
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.diagnostics.suggest import the_one_meant
from vesper.language.syntax.expression_slot import expression_slot, quoted
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree, read_yaml

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ENUM_TYPE = re.compile(r"(?<=type: )(?P<type>(?P<set>set<)?enum\[[^\[\]{}'\"\n]*\](?(set)>))(?= *[,}])")
_TAB_INDENT = re.compile(r"^ *\t[ \t]*", re.MULTILINE)
_TAB_WIDTHS = (2, 4, 8)
_SIGNS = frozenset("=<>!&|+-*/~^%:?")


def with_fix(source: SourceFile, diagnostic: Diagnostic) -> Diagnostic:
    """The diagnostic with its fix, if there is one."""
    find = _FINDERS.get(diagnostic.code, _suggestion)
    return replace(diagnostic, fix=find(source, diagnostic))


def _safe(description: str, *edits: Edit) -> Fix:
    return Fix(description, Safety.SAFE, edits)


# -- misspelt names -------------------------------------------------------------------------------


def _suggestion(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """The one name that is close. Never safe: a close name may be another thing."""
    meant = the_one_meant(diagnostic.help)
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
    """The operator that a sign stands for. Not where it is part of a longer sign, which could mean anything."""
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
    """Whether a word written after this character would run into it; what stands after `(` or a sign needs no space."""
    return before != "" and not before.isspace() and before not in "(&|"


def _tag(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """`!flagged` where an expression begins: YAML takes it for a tag."""
    start = diagnostic.primary.span.start
    slot = expression_slot(source, start)
    is_negation = re.match(r"![A-Za-z_(]", source.text[start : start + 2], re.ASCII)
    return _negation(start) if slot is not None and slot.start == start and is_negation else None


def _negation(start: int) -> Fix:
    return _safe("write `NOT`", Edit(Span(start, start + 1), "NOT "))


# -- what YAML cut --------------------------------------------------------------------------------


def _comment_in_string(source: SourceFile, span: Span) -> Fix | None:
    """A ` #` inside a string of a plain scalar: YAML takes the rest of the line for a comment."""
    slot = expression_slot(source, span.start)
    if slot is None or source.text[slot.start] in "'\"" or " #" not in source.slice(slot):
        return None
    return _quotes(source, slot)


def _mapping_for_text(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """A clause with `: ` in it, which YAML takes for a key and a value."""
    span = diagnostic.primary.span
    slot = expression_slot(source, span.start)
    if slot is None or slot.start != span.start or slot.end < span.end or not _has_colon(source.slice(slot)):
        return None
    return _quotes(source, slot) if source.text[slot.start] not in "'\"[{" else None


def _not_yaml(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    at = diagnostic.primary.span.start
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
    return _safe("put the expression in quotes", Edit(slot, quoted(source.slice(slot))))


def _enum_in_braces(source: SourceFile, at: int) -> Fix | None:
    """`{type: enum[a, b]}`: inside braces YAML takes the bracket for a list."""
    line, _ = source.position(at)
    start = source.offset(line, 1)
    for match in _ENUM_TYPE.finditer(source.line_text(line)):
        if match.start() <= at - start < match.end():
            span = Span(start + match.start(), start + match.end())
            return _safe("put the type in quotes", Edit(span, f"'{match['type']}'"))
    return None


# -- tabs -----------------------------------------------------------------------------------------


def _tabs(source: SourceFile, at: int) -> Fix | None:
    """Spaces for the tabs of the whole file's indentation, if every width that YAML can read says the same."""
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
    """What a tree says, without where it says it."""
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
"""By code; every other diagnostic may have a name to suggest."""
