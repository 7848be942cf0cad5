"""Help lines for diagnostics, derived from the diagnostic and the source text around it.

YAML cuts an expression at a comma, a brace, ` #` or `: ` before Vesper reads it, so the reporting phase sees only the
pieces. This module reads the whole line. Help that a check has set stays, except for the general line about quotes.
Nothing here decides what is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import MAX_HELP, Diagnostic, Label, one_line
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax.expression_slot import expression_slot, quote_scalar
from vesper.language.syntax.fields import QUOTE_HELP
from vesper.language.syntax.habits.commas import comma_numbers
from vesper.language.syntax.habits.type_forms import respell_type
from vesper.language.syntax.habits.type_rescue import named_record
from vesper.language.syntax.repairs import respelt_call
from vesper.language.syntax.yaml.reader import UNDER_INDENTED

_QUANTIFIER = re.compile(r"(?P<head>(?:FORALL|EXISTS)\s+[a-z_][^:#]*?\s+IN\s+[^:#]*?)\s*:\s+(?P<rest>[^#]*\S)")
_MOMENTS = {
    "date": "2026-11-15",
    "timestamp": "2026-11-15T12:00:00Z",
    "duration": "PT1H30M",
    "time_of_day": "14:30:00",
    "period": "P1Y2M",
}
_IN_BRACES = re.compile(r" *(?:- +)?(?:[a-z_]+: +)?\{")
_STARTS_WITH_BRACKET = re.compile(r" *(?:- +)?(?:[a-z_]+: +)?[\[{]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_ -]*")

CUT_IN_BRACES = (
    "inside `{…}` YAML cuts at `,`, `[`, `]`, `{` and `}`: put the expression in quotes, "
    "or give each key of the row a line of its own"
)
CUT_BY_COMMENT = "` #` starts a comment and ends the text before it: put the whole expression in double quotes"
STARTS_STRUCTURE = "an expression that starts with `[`, `{` or a quote is put in quotes as a whole"


def with_advice(source: SourceFile, diagnostic: Diagnostic) -> Diagnostic:
    """Return the diagnostic with a help line, if it has none and one applies."""
    if diagnostic.code in _MAY_BE_COMMA and (comma := _decimal_comma(source, diagnostic)) is not None:
        return comma
    find = _FINDERS.get(diagnostic.code)
    if find is None or (diagnostic.help not in (None, QUOTE_HELP) and diagnostic.code is not Code.YAML_FEATURE):
        return diagnostic
    found = find(source, diagnostic)
    step = _step_of(source, _marked_text(source, diagnostic)) if "is a step" in (found or "") else None
    if step is not None:
        diagnostic = replace(diagnostic, secondary=(Label(step, "the step"),))
    if found is not None and found.startswith(CUT_BY_COMMENT) and diagnostic.code is Code.BAD_CHARACTER:
        diagnostic = _at_comment(source, diagnostic)
    return diagnostic if found is None else replace(diagnostic, help=one_line(found, MAX_HELP))


def _at_comment(source: SourceFile, diagnostic: Diagnostic) -> Diagnostic:
    """Return the diagnostic of an open string at the comment that cuts it."""
    start = diagnostic.primary.span.start
    at = source.text.index(" #", start) + 1
    headline = diagnostic.code.headline.replace("{what}", "a text that a comment cuts")
    labels = (
        Label(Span(at, at + 1), "a comment starts here, so the text ends"),
        Label(Span(start, start + 1), "the text"),
    )
    return replace(diagnostic, headline=headline, primary=labels[0], secondary=labels[1:])


def _line(source: SourceFile, diagnostic: Diagnostic) -> str:
    return source.line_text(source.position(diagnostic.primary.span.start)[0])


def _marked_text(source: SourceFile, diagnostic: Diagnostic) -> str:
    return source.slice(diagnostic.primary.span)


_MAY_BE_COMMA = (
    Code.UNKNOWN_KEY,
    Code.UNKNOWN_NAME,
    Code.BAD_NAME,
    Code.BAD_LITERAL,
    Code.WRONG_KIND,
    Code.DUPLICATE_KEY,
)


def _decimal_comma(source: SourceFile, diagnostic: Diagnostic) -> Diagnostic | None:
    """Return the diagnostic of a number with a decimal comma, which may be cut by YAML or unreadable as a whole."""
    span, number = diagnostic.primary.span, source.position(diagnostic.primary.span.start)[0]
    line, start = source.line_text(number), source.offset(number, 1)
    marked = _marked_text(source, diagnostic)
    of_key = re.fullmatch(r"\{ *\w+: *(?P<number>[0-9][0-9,.]*) *\}", marked)  # a constraint
    if of_key is not None:
        span = Span(span.start + of_key.start("number"), span.start + of_key.end("number"))
        marked = of_key["number"]
    first = span.start + marked.startswith(("'", '"')) - start
    found = next((each for each in comma_numbers(line) if each.start <= first <= each.end), None)
    if found is None or not re.fullmatch(r"[0-9,.]*", marked.strip("'\"")):
        return None
    headline = Code.BAD_NUMBER.headline.replace("{text}", found.written).replace("{problem}", found.problem)
    label = Label(span if len(marked) > len(found.written) else Span(start + found.start, start + found.end), "")
    return replace(diagnostic, code=Code.BAD_NUMBER, headline=headline, primary=label, secondary=(), help=found.help)


# -- files and YAML -------------------------------------------------------------------------------


def _unreadable_help(_: SourceFile, diagnostic: Diagnostic) -> str | None:
    if "byte order mark" in diagnostic.headline:
        return "save the file as UTF-8 without a byte order mark"
    if "larger than" in diagnostic.headline:
        return "a node decides one thing; data of this size belongs into an input"
    return "save the file as UTF-8" if diagnostic.headline.endswith("is not UTF-8") else None


def _invalid_yaml_help(source: SourceFile, diagnostic: Diagnostic) -> str | None:
    if not source.text.strip():
        return "`vesper new NAME` writes a node to start from"
    number, column = source.position(diagnostic.primary.span.start)
    line = source.line_text(number)
    found = _marked_text(source, diagnostic)
    if found and not found.isprintable() and found not in "\t\r\n":
        return "take this character out: it cannot be seen, and text around it may not be what it seems"
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "indent with spaces: YAML takes no tabs there"
    if "escape code" in diagnostic.headline:
        return "write the character itself; half of a surrogate pair is no character"
    if UNDER_INDENTED in diagnostic.headline:
        return "put spaces before it; `vesper check --fix` does"
    above = source.line_text(number - 1) if number > 1 else ""
    if " #" in above and column > len(above) - len(above.lstrip()) and ":" not in line:
        return CUT_BY_COMMENT
    if _STARTS_WITH_BRACKET.match(line) and "flow" not in diagnostic.headline and not _IN_BRACES.match(line):
        return STARTS_STRUCTURE
    if _IN_BRACES.match(line):
        return CUT_IN_BRACES
    return None


_BRACES = re.compile(r": +\{\{? *([^{}:]+?) *\}\}? *(?:#.*)?$")


def _yaml_feature_help(source: SourceFile, diagnostic: Diagnostic) -> str | None:
    """Return the help for an expression that YAML reads as a tag or a mapping."""
    slot = expression_slot(source, diagnostic.primary.span.start)
    text = "" if slot is None else source.slice(slot)
    if re.match(r"![A-Za-z_(]", text):
        return f"write `NOT {text[1:]}`"
    braces = _BRACES.search(_line(source, diagnostic))
    return None if braces is None else f"an expression stands without braces: write `{braces[1]}`"


def _duplicate_help(_: SourceFile, __: Diagnostic) -> str:
    return "keep one of the two; most YAML readers would silently take the last"


def _too_deep_help(_: SourceFile, diagnostic: Diagnostic) -> str | None:
    if "document" in diagnostic.headline:
        return "nothing in a node is nested this deep: a bracket or a dash is repeated"
    return "give parts of it names with LET, or steps of their own" if "expression" in diagnostic.headline else None


# -- shape ----------------------------------------------------------------------------------------

_FORMS = {
    "inputs": "below `inputs:` write `name: type`, one on each line",
    "outputs": "below `outputs:` write `success:`, and below that `name: type`, one on each line",
    "success": "write the names of the outputs: `success: [name]`, or `name: expression` below it",
    "return": "write the names of the outputs: `return: [name]`, or `name: expression` below it",
    "constants": "below `constants:` write `name: {type: …, value: …}`, one on each line",
    "contracts": "below `contracts:` write `preconditions:` or `postconditions:`, each with a list of conditions",
    "preconditions": "write a list: each condition on a line of its own, with `- ` before it",
    "postconditions": "write a list: each condition on a line of its own, with `- ` before it",
    "compute": "below `compute:` write `name: expression`, one on each line",
    "flow": "write a list of steps: each begins with `- `",
    "rows": "write a list of rows: each begins with `- `, the last one is `- otherwise: …`",
    "a node": "a node begins with `node_id:`; `vesper new NAME` writes one to start from",
    "a step": "a step has the fields `step`, `operation` and those of its operation",
    "a row": "a row is `{when: …, then: …}`, the last one `{otherwise: …}`",
}


def _wrong_kind_help(source: SourceFile, diagnostic: Diagnostic) -> str | None:
    line = _line(source, diagnostic)
    quantifier = _QUANTIFIER.search(line)
    if quantifier is not None and " must be text" in diagnostic.headline:
        fixed = f"{quantifier['head']} SATISFIES {quantifier['rest']}"
        return f"YAML reads the `:` as a mapping; write `{fixed}`, or put the whole in quotes"
    braces = _BRACES.search(line)
    if " must be text, not nothing" in diagnostic.headline and braces is not None and "," not in braces[1]:
        return f"an expression stands without braces: write `{braces[1]}`"
    if " must be text, not nothing" in diagnostic.headline and re.search(r": *#", line):
        return "`#` starts a comment: write the value before it; in a text it stands in quotes"
    if " must be text, not nothing" in diagnostic.headline:
        return "write the missing value after the colon"
    found = _marked_text(source, diagnostic)
    if " must be text, not a mapping" in diagnostic.headline and ": " in found and not found.startswith("{"):
        return "put the whole expression in quotes: YAML reads `: ` as a mapping"
    declaration = _declaration_help(source, diagnostic)
    if declaration is not None:
        return declaration
    key = re.match(r"`([^`]*)`", diagnostic.headline)
    is_about_text = " must be text" in diagnostic.headline
    return None if key is None or is_about_text else _FORMS.get(key[1])


_BRACKETS = re.compile(r"\[ *['\"\w]+(?: *, *['\"\w]+)* *\]")
_LITERAL_TYPES = (("integer", r"[-+]?[0-9]+"), ("decimal", r"[-+]?[0-9]+\.[0-9]+"), ("boolean", "true|false"))


def _section(source: SourceFile, diagnostic: Diagnostic) -> str:
    """Return the nearest key in the first column above a diagnostic."""
    above = source.text[: diagnostic.primary.span.start]
    keys = re.findall(r"^([a-z_]+):", above, re.MULTILINE)
    return keys[-1] if keys else ""


def _declaration_help(source: SourceFile, diagnostic: Diagnostic) -> str | None:
    """Return the help for a type in brackets, or for a constant without a type."""
    found, section = _marked_text(source, diagnostic), _section(source, diagnostic)
    name = re.match(r"`([^`]*)`", diagnostic.headline)
    if _BRACKETS.fullmatch(found) and section in ("inputs", "outputs", "types"):
        inner = [each.strip(" '\"") for each in found[1:-1].split(",")]
        type_ = respell_type(found) if len(inner) == 1 else None
        return f"write `{type_ or 'enum[' + ', '.join(inner) + ']'}`"
    if re.match(r"\[ *\{", found) and section in ("inputs", "outputs"):
        return named_record(f"array<{found[1:-1].strip()}>", source, diagnostic.primary.span.start)[2]
    if section == "constants" and name is not None and " must be a mapping, not text" in diagnostic.headline:
        type_ = next((each for each, pattern in _LITERAL_TYPES if re.fullmatch(pattern, found)), "string")
        return f"write `{name[1]}: {{type: {type_}, value: {found}}}`"
    return None


def _unknown_key_help(source: SourceFile, diagnostic: Diagnostic) -> str | None:
    if re.fullmatch(r"[0-9]+\)", _marked_text(source, diagnostic)):
        return "this is the rest of the value before it: inside `{…}` YAML cuts at `,`"
    if not _NAME.fullmatch(_marked_text(source, diagnostic)) and _IN_BRACES.match(_line(source, diagnostic)):
        return CUT_IN_BRACES
    return None


# -- expressions ----------------------------------------------------------------------------------


def _expression_help(source: SourceFile, diagnostic: Diagnostic) -> str | None:
    if "found the end" not in diagnostic.headline and "open string" not in diagnostic.headline:
        return None
    line, offset = _line(source, diagnostic), diagnostic.primary.span.start
    _, column = source.position(offset)
    rest = line[column - 1 :]
    if "open string" in diagnostic.headline:
        # A second quote after ` #` means that the string was closed and YAML cut it as a comment.
        _, hash_, comment = rest[1:].partition(" #")
        if not hash_ or rest[0] not in comment:
            other = {"'": "double quotes", '"': "single quotes"}.get(rest[:1], "quotes")
            return f"write the closing `{rest[:1]}`; a text with `{rest[:1]}` in it is put in {other}"
        slot = expression_slot(source, offset)
        if slot is not None and source.text[slot.start] in "'\"":
            return f"write the closing `{rest[:1]}`"
        return CUT_BY_COMMENT if slot is None else f"{CUT_BY_COMMENT}: `{quote_scalar(source.slice(slot))}`"
    goes_on = rest.lstrip().startswith((",", "]", "}", "[", "{")) and rest.strip() not in ("}", "},")
    if _IN_BRACES.match(line) and goes_on:
        return CUT_IN_BRACES
    return None


def _number_help(source: SourceFile, diagnostic: Diagnostic) -> str | None:
    if "underscore" in diagnostic.headline:
        return f"write `{_marked_text(source, diagnostic).replace('_', '')}`"
    if "exponent" in diagnostic.headline or "float" in diagnostic.headline:
        return "an exponent makes a float, of at most 1.7976931348623157e308; an exact number is written out"
    if "places" in diagnostic.headline or "64 bits" in diagnostic.headline:
        return "an integer has 64 bits, a decimal at most 1,000 digits; write a decimal with a point"
    return None


def _bad_literal_help(source: SourceFile, diagnostic: Diagnostic) -> str | None:
    written = _marked_text(source, diagnostic)
    for type_, example in _MOMENTS.items():
        if diagnostic.headline.endswith(f"type {type_}"):
            return f"write it as in `{example}`"
    if written.strip("'\"") == "null":
        return "only an `optional<…>` can be null: declare it so, or leave the default out"
    percent = re.fullmatch(r"['\"]?([0-9]+(?:\.[0-9]+)?) *%['\"]?", written)
    if percent is not None and "type decimal" in diagnostic.headline:
        return f"write `{Decimal(percent[1]).scaleb(-2):f}`"
    if "type decimal" in diagnostic.headline and re.fullmatch(r"[+-]?[0-9.]+[eE][+-]?[0-9]+", written):
        return "a decimal has at most 1,000 digits and 1,000 places"
    if "type decimal" in diagnostic.headline or "type integer" in diagnostic.headline:
        return "write digits, with a point for a decimal: `42`, `0.05`"
    return "write `true` or `false`" if "type boolean" in diagnostic.headline else None


def _type_mismatch_help(source: SourceFile, diagnostic: Diagnostic) -> str | None:
    around = (
        source.text[: diagnostic.primary.span.start].rstrip(),
        source.text[diagnostic.primary.span.end :].lstrip(),
    )
    if diagnostic.headline.startswith("expected boolean") and (around[0].endswith("=>") or around[1].startswith("=>")):
        return "`=>` is read as *implies*, between conditions; greater or equal is written `>=`"
    if diagnostic.headline.startswith("expected boolean"):
        return "a condition is true or false: compare the value with something, such as `… > 0`"
    return None


def _operator_types_help(_: SourceFile, diagnostic: Diagnostic) -> str | None:
    types = diagnostic.primary.text.removeprefix("between ").split(" and ")
    if len(types) != 2:
        return None
    numbers, others = {"integer", "decimal"}, set(types)
    if others == {"string", "boolean"}:
        return "write `true` or `false` without quotes"
    if others == {"decimal", "float"}:
        return "an exponent or the type `float` makes a float: write all digits, or convert with `to_decimal(…)`"
    if "string" in others and others & numbers:
        return "write a number without quotes; convert a text with `parse_decimal(…)` or `parse_integer(…)`"
    return None


_SEEN_BY = {
    "preconditions": "preconditions are checked before the flow, over inputs and constants",
    "postconditions": "postconditions are checked after the flow, over outputs, inputs and constants",
    "invariants": "invariants are checked after the flow, over inputs, constants, `output.x` and `error.x`",
}
_CLAUSES = re.compile(r"^ +(?P<kind>preconditions|postconditions|invariants):", re.MULTILINE)


def _step_of(source: SourceFile, name: str) -> Span | None:
    """Return the span of a step's name, where it is declared."""
    found = re.search(rf"\bstep: +(?P<name>{re.escape(name)})\b", source.text)
    return None if found is None else Span(*found.span("name"))


def _clause_around(source: SourceFile, diagnostic: Diagnostic) -> tuple[str, str] | None:
    """Return the kind and the text of the contract clause with a diagnostic."""
    found = [*_CLAUSES.finditer(source.text[: diagnostic.primary.span.start])]
    if not found or _section(source, diagnostic) != "contracts":
        return None
    if source.text[diagnostic.primary.span.start - 1] == ".":  # `output.x`, `error.x`
        return None
    written = re.split(r"\s#", _line(source, diagnostic))[0].strip().removeprefix("- ").strip(" '\"")
    return found[-1]["kind"], written


_QUANTIFIERS = {"all": "FORALL", "every": "FORALL", "any": "EXISTS", "some": "EXISTS"}
_OF_ERRORS = {
    "occurred": "whether an error occurred is `error.error_code IS NOT NULL`, under `invariants`: "
    "postconditions hold only where the node returns",
    "logged": "every error is logged under `security: {audit_level: basic}`; whether one occurred is "
    "`error.error_code IS NOT NULL`, under `invariants`",
}


_OF_RESPONSES = ("status", "status_code", "statusCode", "statuscode", "code", "http_status", "ok", "is_success")
_STATUS_HELP = (
    "an answer is its body; a status from 400 on is a failure of the step, which `on_error` handles: "
    "`on_error: {http_404: {return_error: …}, http_5xx: {…}}`"
)


def _is_api_answer(source: SourceFile, diagnostic: Diagnostic) -> bool:
    """Return whether a member is read of the answer of an API call."""
    step = re.search(r"\b([a-z_]\w*)\??\.$", source.text[: diagnostic.primary.span.start])
    if step is None:
        return False
    of_step = rf"^ *- +(?:step: +{step[1]}\b|(?:(?!^ *- ).)*^ *step: +{step[1]}\b)(?:(?!^ *- ).)*"
    block = re.search(of_step, source.text, re.MULTILINE | re.DOTALL)
    return block is not None and "external_api_call" in block[0]


def _unknown_name_help(source: SourceFile, diagnostic: Diagnostic) -> str | None:
    name, headline = _marked_text(source, diagnostic), diagnostic.headline
    rest = source.text[diagnostic.primary.span.end :].partition("\n")[0]
    if headline.startswith("no function") and name in _QUANTIFIERS:
        inner = re.match(r"\((([a-z_][a-z0-9_]*)[^()]*)\)", rest)
        clause, item = (inner[1], inner[2]) if inner is not None else ("item > 0", "item")
        return (
            f"write `{_QUANTIFIERS[name]} {item} IN {item}s SATISFIES {clause}`, over the collection of each `{item}`"
        )
    if (
        headline.startswith("no function")
        and (found := respelt_call(source, diagnostic.primary.span.start)) is not None
    ):
        return f"write `{found}`"
    if headline.startswith("no function") and name.lower() == "dateadd":
        return "write `add_days(x, 1)`, `add_months(x, 1)` or `add_years(x, 1)`"
    step = _step_of(source, name)
    if step is not None and (clause := _clause_around(source, diagnostic)) is not None:
        kind, written = clause
        return (
            f"`{name}` is a step, and {_SEEN_BY[kind]}: write it over those, or below the step "
            f"`- require: [{{condition: {written}, error: {{error_code: …, message: …}}}}]`"
        )
    if headline.startswith("no input, constant") and step is not None:
        return f"a step sees those above it, outside of ended blocks: put the step `{name}` above this place"
    if headline.startswith("no field of") and name in _OF_RESPONSES and _is_api_answer(source, diagnostic):
        return _STATUS_HELP
    if "invariants no error" in headline:
        return _OF_ERRORS.get(name, f"write it under `invariants`, as in `error.{name} IS NULL`")
    if headline.startswith("no output, input or constant") and rest.startswith("."):
        return (
            f"state that the node reads or changes is named under `contracts`: `observe: {{{name}: {{operation: …}}}}`"
        )
    return _word_help(source, diagnostic.primary.span)


_VALUE_KEY = re.compile(r"(?P<key>[a-z_][a-z0-9_]*): +$")
_CONDITIONS = frozenset(["when", "condition", "while", "over", "until"])


def _word_help(source: SourceFile, span: Span) -> str | None:
    """Return the help for an unknown word that may be a text: a whole value, or one side of a comparison."""
    number, column = source.position(span.start)
    line, word = source.line_text(number), source.slice(span)
    before, after = line[: column - 1], line[column - 1 + len(word) :]
    key = _VALUE_KEY.search(before)
    if key is not None and re.match(r" *(?:$|[,}#])", after) and key["key"] not in _CONDITIONS:
        return f"if it is a text, it has quotes of its own: `{key['key']}: \"'{word}'\"`"
    is_compared = re.search(r"(?:==|!=) *$", before) or re.search(r"\bIN \[[^\]]*$", before)
    if is_compared or re.match(r" *(?:==|!=)", after):
        return f"if it is a text, it has quotes: `'{word}'`"
    return None


_FINDERS: dict[Code, Callable[[SourceFile, Diagnostic], str | None]] = {
    Code.UNREADABLE_FILE: _unreadable_help,
    Code.INVALID_YAML: _invalid_yaml_help,
    Code.DUPLICATE_KEY: _duplicate_help,
    Code.YAML_FEATURE: _yaml_feature_help,
    Code.TOO_DEEP: _too_deep_help,
    Code.WRONG_KIND: _wrong_kind_help,
    Code.UNKNOWN_KEY: _unknown_key_help,
    Code.EXPRESSION_SYNTAX: _expression_help,
    Code.BAD_CHARACTER: _expression_help,
    Code.BAD_NUMBER: _number_help,
    Code.BAD_LITERAL: _bad_literal_help,
    Code.TYPE_MISMATCH: _type_mismatch_help,
    Code.OPERATOR_TYPES: _operator_types_help,
    Code.UNKNOWN_NAME: _unknown_name_help,
}
