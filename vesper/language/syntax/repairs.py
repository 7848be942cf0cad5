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
from vesper.language.syntax.habits.forms import respell
from vesper.language.syntax.habits.rescue import is_plain
from vesper.language.syntax.habits.table import NAMES
from vesper.language.syntax.habits.type_forms import respell_type
from vesper.language.syntax.scalar_text import place_text
from vesper.language.syntax.yaml.reader import UNDER_INDENTED, missing_spaces, read_yaml, recover_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ENUM_TYPE = re.compile(r"(?<=type: )(?P<type>(?P<set>set<)?enum\[[^\[\]{}'\"\n]*\](?(set)>))(?= *[,}])")
_TAB_INDENT = re.compile(r"^ *\t[ \t]*", re.MULTILINE)
_TAB_WIDTHS = (2, 4, 8)


def with_fix(source: SourceFile, diagnostic: Diagnostic) -> Diagnostic:
    """Return the diagnostic with its fix, if there is one."""
    find = _FINDERS.get(diagnostic.code, _fix_by_suggestion)
    return replace(diagnostic, fix=find(source, diagnostic))


def _safe_fix(description: str, *edits: Edit) -> Fix:
    return Fix(description, Safety.SAFE, edits)


# -- misspelt names -------------------------------------------------------------------------------


def _fix_by_suggestion(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Return a fix with the single close name. Safe only if the case differs; another name may mean something else."""
    meant = single_suggestion(diagnostic.help)
    span = diagnostic.primary.span
    written = source.slice(span)
    if len(written) > 2 and written[0] == written[-1] and written[0] in "'\"":
        span, written = Span(span.start + 1, span.end - 1), written[1:-1]
    if meant is None or not _WORD.fullmatch(meant) or not _WORD.fullmatch(written):
        return None
    safety = Safety.SAFE if meant.lower() == written.lower() else Safety.SUGGESTED
    return Fix(f"write `{meant}`", safety, (Edit(span, meant),))


# -- other spellings ------------------------------------------------------------------------------


_MEANT_TYPE = re.compile(
    r"write `(?P<meant>.*?)`(?P<reason>: (?:`\w+` has no|a type has no|a default is|the record is) .*)?"
)
"""Help that names a type, or a declaration with it."""


def _fix_spelling(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Fix an expression or a type in a foreign spelling, as the help shows it."""
    at = diagnostic.primary.span.start
    quoted = re.fullmatch(
        r"YAML reads `\[…\]` as a list: put the whole expression in quotes: `(.*)`", diagnostic.help or ""
    )
    if quoted is not None:
        return _safe_fix("put the expression in quotes", Edit(diagnostic.primary.span, quoted[1]))
    scalar = _scalar_at(source, at)
    if scalar is None or diagnostic.help is None:
        return None
    type_ = _MEANT_TYPE.fullmatch(diagnostic.help)
    meant = respell_type(scalar.text) if type_ is None or type_["reason"] is None else type_["meant"]
    if type_ is not None and meant == type_["meant"]:
        if meant.startswith("{") and not (scalar.style == "" and _is_block_style(source, at)):
            return None
        written = meant if scalar.style == "" else quote_scalar(meant)
        return _safe_fix(f"write `{meant}`", Edit(diagnostic.primary.span, written))
    bound = re.fullmatch(r"write `(.*)`: each item needs a name", diagnostic.help)
    if bound is not None:
        return _safe_fix(f"write `{bound[1]}`", Edit(scalar.span, bound[1]))
    return _expression_fix(source, scalar, at, None)


def _expression_fix(source: SourceFile, scalar: Scalar, at: int, call: int | None) -> Fix | None:
    """Return the fix of an expression whose first habit is at an offset. With `call` it fixes only the call there."""
    placed = place_text(source, scalar)
    try:
        index = placed.offsets.index(at)
    except ValueError:
        return None
    found = respell(placed.text, None if call is None else index)
    if {"CASE", "WHEN", "END", "BETWEEN"} & {each.text for each in found.pieces}:
        return None  # not translated to the end
    if not found.habits or min(each.start for each in found.habits) != index:
        return None
    edits = found.edits()
    description = f"write `{' '.join(found.translation().split())}`"
    start, end, text = edits[0]
    if not found.has_forms and len(edits) == len(found.habits):
        return _safe_fix(description, *(Edit(placed.span(start, end), new) for start, end, new in edits))
    if "\n" in placed.text.strip():
        return None
    if scalar.style == "'":
        text = text.replace("'", "''")
    elif scalar.style == '"':
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    elif scalar.style == "" and not (is_plain(text) and (_is_block_style(source, at) or not set(",[]{}") & set(text))):
        return _safe_fix(description, Edit(scalar.span, quote_scalar(text)))
    return _safe_fix(description, Edit(placed.span(start, end), text))


def respelt_call(source: SourceFile, offset: int) -> str | None:
    """Return an expression with the foreign call at an offset translated."""
    scalar = _scalar_at(source, offset)
    if scalar is None:
        return None
    placed = place_text(source, scalar)
    found = respell(placed.text, placed.offsets.index(offset)) if offset in placed.offsets else None
    return " ".join(found.translation().split()) if found is not None and found.habits else None


def _is_block_style(source: SourceFile, at: int) -> bool:
    """Return whether no bracket is open on the line before an offset."""
    line, column = source.position(at)
    before = source.line_text(line)[: column - 1]
    return before.count("{") == before.count("}") and before.count("[") == before.count("]")


def _scalar_at(source: SourceFile, offset: int) -> Scalar | None:
    """Return the scalar around an offset, also in a file that is not YAML."""
    tree = recover_yaml(source)[0]
    while tree is not None and not isinstance(tree, Scalar):
        parts = tree.items if isinstance(tree, Sequence) else tuple(part for entry in tree.entries for part in entry)
        tree = next((each for each in parts if each.span.start <= offset < each.span.end), None)
    return tree


def _fix_character(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    span = diagnostic.primary.span
    return _fix_comment_in_string(source, span) if source.slice(span) in ("'", '"', "#") else None


def _fix_property(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Fix `name.length`, which is a call here, and a state of a loop that becomes a decimal."""
    decimal = re.search(r" starts as the integer .*: write `state: \{\w+: ([0-9]+\.00)\}`", diagnostic.help or "")
    if decimal is not None:
        return _safe_fix(f"write `{decimal[1]}`", Edit(diagnostic.primary.span, decimal[1]))
    span, call = diagnostic.primary.span, re.fullmatch(r"only a record has fields: write `(.*)`", diagnostic.help or "")
    field = re.match(r"\.[A-Za-z_0-9]+", source.text[span.end : span.end + 64])
    if call is None or field is None:
        return None
    return _safe_fix(f"write `{call[1]}`", Edit(Span(span.start, span.end + field.end()), call[1]))


def _fix_operand(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Wrap an operand of another type in the call that the help names."""
    call = re.search(r"write `(\w+\((.*)\))`$", diagnostic.help or "")
    if call is None:
        return None
    span = diagnostic.primary.span
    line_start = source.offset(source.position(span.start)[0], 1)
    before = source.text[line_start : span.start].rstrip()
    after = source.text[span.end :].partition("\n")[0]
    start = span.end + len(after) - len(after.lstrip())
    moved = re.fullmatch(r"write `(days_between|add_days)\((.*), (.*)\)`", diagnostic.help or "")
    if moved is not None:
        left, right = (moved[3], moved[2]) if moved[1] == "days_between" else (moved[2], moved[3].lstrip("-"))
        if not before.endswith(left) or not after.lstrip().startswith(right):
            return None
        whole = Span(line_start + len(before) - len(left), start + len(right))
        return _safe_fix(f"write `{call[1]}`", Edit(whole, call[1]))
    written = source.slice(span)
    if written.replace('"', "'") == call[2]:
        return _safe_fix(f"write `{call[1]}`", Edit(span, call[1].replace(call[2], written)))
    for inner in (call[2], call[2].replace("'", '"')):
        if after.lstrip().startswith(inner):
            return _safe_fix(
                f"write `{call[1]}`", Edit(Span(start, start + len(inner)), call[1].replace(call[2], inner))
            )
        if before.endswith(inner):
            end = line_start + len(before)
            return _safe_fix(f"write `{call[1]}`", Edit(Span(end - len(inner), end), call[1].replace(call[2], inner)))
    return None


def _fix_cut_expression(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Fix an expression in `{…}` that YAML cut at a comma."""
    quoted = re.search(r"put the expression in quotes: `(\".*\"|'.*')`$", diagnostic.help or "")
    line = source.position(diagnostic.primary.span.start)[0]
    text = "" if quoted is None else quoted[1][1:-1].replace("''", "'" if quoted[1][0] == "'" else "''")
    at = source.line_text(line).find(text) if text else -1
    if quoted is None or at < 0:
        return None
    start = source.offset(line, 1) + at
    return _safe_fix("put the expression in quotes", Edit(Span(start, start + len(text)), quoted[1]))


def _fix_bad_name(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Fix a declared name everywhere in the file, unless the new one is taken."""
    optional = re.match(r"write `(\w+: (optional<[^`]*>))`", diagnostic.help or "")
    if optional is not None:
        start = diagnostic.primary.span.start
        declared = re.compile(r"\w+\? *: *[^\s,}#\"']+(?= *(?:$|#|\}))", re.MULTILINE).match(source.text, start)
        span = None if declared is None else Span(*declared.span())
        return None if span is None else _safe_fix(f"write `{optional[1]}`", Edit(span, optional[1]))
    match = re.match(r"write `([a-z][a-z0-9_]*)`", diagnostic.help or "")
    written = source.slice(diagnostic.primary.span).strip("'\"")
    if match is None or re.search(rf"\b{match[1]}\b", source.text):
        return None
    if not _WORD.fullmatch(written):
        return _safe_fix(f"write `{match[1]}`", Edit(diagnostic.primary.span, match[1]))
    uses = re.finditer(rf"(?<![\w.#]){re.escape(written)}(?!\w)", source.text)
    return _safe_fix(f"write `{match[1]}`", *(Edit(Span(*use.span()), match[1]) for use in uses))


_WRITE_CALL = re.compile(r"write `([A-Za-z_]+)\(…\)`")
"""Help that names another function for the same arguments."""


def _fix_unknown_name(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Fix a function or a word of another language, or a name in another case."""
    span, help_ = diagnostic.primary.span, diagnostic.help or ""
    written = source.slice(span)
    output = re.fullmatch(r"an output is named directly: write `(\w+)`", help_)
    if output is not None:
        whole = Span(span.start, source.text.index(output[1], span.end) + len(output[1]))
        return _safe_fix(f"write `{output[1]}`", Edit(whole, output[1]))
    if diagnostic.headline.startswith("no function"):
        scalar = _scalar_at(source, span.start)
        form = None if scalar is None else _expression_fix(source, scalar, span.start, span.start)
        call = _WRITE_CALL.match(help_)
        if form is not None or call is not None:
            return form if form is not None or call is None else _safe_fix(f"write `{call[1]}`", Edit(span, call[1]))
    elif re.fullmatch(rf"write `[a-z][a-z0-9_]*\.{re.escape(written)}`", help_):
        return _safe_fix(help_, Edit(span, help_.split("`")[1]))
    elif written in NAMES and help_ == f"write `{NAMES[written]}`":
        return _safe_fix(help_, Edit(span, NAMES[written]))
    return _fix_by_suggestion(source, diagnostic)


def _fix_by_help(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Replace a name, a type or a field by the word that the help names."""
    match = re.match(r"write `([A-Za-z_0-9][A-Za-z0-9_.]*)`", diagnostic.help or "")
    if match is None:
        return _fix_by_suggestion(source, diagnostic)
    return _safe_fix(f"write `{match[1]}`", Edit(diagnostic.primary.span, match[1]))


def _fix_tag(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Fix `!flagged` at the start of an expression. YAML reads it as a tag."""
    start = diagnostic.primary.span.start
    slot = expression_slot(source, start)
    is_negation = re.match(r"![A-Za-z_(]", source.text[start : start + 2], re.ASCII)
    return _negation(start) if slot is not None and slot.start == start and is_negation else None


def _negation(start: int) -> Fix:
    return _safe_fix("write `NOT`", Edit(Span(start, start + 1), "NOT "))


# -- what YAML cut --------------------------------------------------------------------------------


def _fix_comment_in_string(source: SourceFile, span: Span) -> Fix | None:
    """Fix ` #` inside a string of a plain scalar. YAML reads it as a comment."""
    slot = expression_slot(source, span.start)
    if slot is None or source.text[slot.start] in "'\"" or " #" not in source.slice(slot):
        return None
    return _fix_by_quotes(source, slot)


def _fix_mapping_for_text(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    """Fix a clause with `: `, which YAML reads as a key and a value, and `effects` by step."""
    span = diagnostic.primary.span
    if diagnostic.primary.text.startswith("a space is missing"):
        return _safe_fix("write a space after the colon", Edit(Span(span.end, span.end), " "))
    if diagnostic.headline.startswith("`effects` must be a list"):
        return _fix_effects_by_step(source, span)
    slot = expression_slot(source, span.start)
    if slot is None or slot.start != span.start or slot.end < span.end or not _has_colon(source.slice(slot)):
        return None
    return _fix_by_quotes(source, slot) if source.text[slot.start] not in "'\"[{" else None


_EFFECT_BY_STEP = re.compile(r"(?P<indent> *)(?P<step>[a-z_][a-z0-9_]*): +(?P<value>\S.*?) *")


def _fix_effects_by_step(source: SourceFile, span: Span) -> Fix | None:
    """Turn a mapping of steps to completions, one on each line, into the list of a case."""
    first, last = source.position(span.start)[0], source.position(max(span.end - 1, span.start))[0]
    edits = []
    for number in range(first, last + 1):
        match = _EFFECT_BY_STEP.fullmatch(source.line_text(number))
        if match is None or re.search(rf"\bstep: +{match['step']}\b", source.text) is None:
            return None
        value = match["value"]
        parts = re.fullmatch(r"\{ *((?:returns|fails|request): .*)\}", value)
        if parts is None and value[0] not in "[{\"'" and re.search(r"[,\[\]{}#]|: ", value):
            return None
        given = parts[1] if parts is not None else f"returns: {value}"
        start = source.offset(number, 1) + len(match["indent"])
        end = source.offset(number, 1) + match.end("value")
        edits.append(Edit(Span(start, end), f"- {{step: {match['step']}, {given}}}"))
    return _safe_fix("write a list of requests", *edits)


def _fix_invalid_yaml(source: SourceFile, diagnostic: Diagnostic) -> Fix | None:
    at = diagnostic.primary.span.start
    if diagnostic.headline.endswith("a space is missing after `:`"):
        return _safe_fix("write a space after the colon", Edit(Span(at + 1, at + 1), " "))
    fault = next((each for each in recover_yaml(source)[1] if each.offset == at and each.edits), None)
    if fault is not None:
        # A colon and a dash have one place. Where a line belongs, or a bracket ends, only the author knows.
        safety = Safety.SAFE if fault.is_clear else Safety.SUGGESTED
        repairs = tuple(Edit(Span(start, end), new) for start, end, new in fault.edits)
        return Fix((fault.help or "").split(": `")[0], safety, repairs)
    if UNDER_INDENTED in diagnostic.headline:
        edits = (Edit(Span(offset, offset), " " * count) for offset, count in missing_spaces(source).items())
        return _safe_fix("indent the lines inside quotes and brackets", *edits)
    slot = expression_slot(source, at)
    if slot is not None and slot.start <= at < slot.end:
        text = source.slice(slot)
        if text.startswith("!("):
            return _negation(slot.start)
        if text[0] in "'\"" or (_has_colon(text) and text[0] not in "[{!&*"):
            return _fix_by_quotes(source, slot)
    return _fix_enum_in_braces(source, at) or _fix_tabs(source, at)


def _has_colon(text: str) -> bool:
    return ": " in text or text.endswith(":")


def _fix_by_quotes(source: SourceFile, slot: Span) -> Fix:
    return _safe_fix("put the expression in quotes", Edit(slot, quote_scalar(source.slice(slot))))


def _fix_enum_in_braces(source: SourceFile, at: int) -> Fix | None:
    """Fix `{type: enum[a, b]}`. Inside braces YAML reads the bracket as a list."""
    line, _ = source.position(at)
    start = source.offset(line, 1)
    for match in _ENUM_TYPE.finditer(source.line_text(line)):
        if match.start() <= at - start < match.end():
            span = Span(start + match.start(), start + match.end())
            return _safe_fix("put the type in quotes", Edit(span, f"'{match['type']}'"))
    return None


# -- tabs -----------------------------------------------------------------------------------------


def _fix_tabs(source: SourceFile, at: int) -> Fix | None:
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
    return _safe_fix("indent with spaces", *next(iter(found.values())))


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
    Code.BAD_CHARACTER: _fix_character,
    Code.BAD_NAME: _fix_bad_name,
    Code.BAD_NUMBER: _fix_by_help,
    Code.EXPRESSION_SYNTAX: _fix_cut_expression,
    Code.INVALID_YAML: _fix_invalid_yaml,
    Code.OPERATOR_TYPES: _fix_operand,
    Code.OTHER_SPELLING: _fix_spelling,
    Code.TYPE_MISMATCH: _fix_property,
    Code.UNKNOWN_KEY: _fix_by_help,
    Code.UNKNOWN_NAME: _fix_unknown_name,
    Code.UNKNOWN_OPERATION: _fix_by_help,
    Code.UNKNOWN_TYPE: _fix_by_help,
    Code.WRONG_KIND: _fix_mapping_for_text,
    Code.YAML_FEATURE: _fix_tag,
}
"""Finder by code; other diagnostics may have a name to suggest."""
