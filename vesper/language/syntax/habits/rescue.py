"""Diagnostics for expressions in a foreign spelling.

Called after parsing failed. If the translation parses, its one diagnostic replaces those of the parser, and the check
continues with the translated expression. So a foreign spelling hides no other problem.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.expression_slot import quote_scalar
from vesper.language.syntax.habits.commas import grouped_numbers
from vesper.language.syntax.habits.forms import Respelling, respell
from vesper.language.syntax.habits.pieces import Piece
from vesper.language.syntax.scalar_text import PlacedText
from vesper.language.syntax.tokens import END, NAME, NUMBER, SIGN, STRING, WORD, Token, tokenize

_Parsed = TypeVar("_Parsed")
_MAX_TEXT = 1_000
"""Maximum length of a text that is translated, in characters."""
_REPLACED = frozenset([Code.EXPRESSION_SYNTAX, Code.BAD_CHARACTER, Code.BAD_NUMBER])
_NO_WORDS = frozenset(["WHEN", "END", "BETWEEN"])
"""Words that only forms of other languages have."""
_KINDS = {"name": NAME, "word": WORD, "number": NUMBER, "string": STRING}
_TEMPLATE = re.compile(r"(?<![A-Za-z0-9_])[fF](?=['\"])|`")
_BARE_TEMPLATE = re.compile(r"[^'\"{}]*\{[a-z_][a-z0-9_.]*\}[^'\"]*")


def rescue(
    placed: PlacedText, bag: DiagnosticBag, before: int, parse: Callable[[list[Token], DiagnosticBag], _Parsed | None]
) -> _Parsed | None:
    """Report habits instead of the errors since `before`. Returns the intended expression if it is certain."""
    if len(placed.text) > _MAX_TEXT or any(each.code not in _REPLACED for each in bag.errors_since(before)):
        return None
    if _report_template(placed, bag, before) or _report_grouped_numbers(placed, bag, before):
        return None
    found = respell(placed.text)
    if not found.habits:
        if _report_sentence(placed, bag, before):
            return None
        _report_bare_template(placed, bag, before)
        return None
    scratch = DiagnosticBag(bag.source)
    parsed = parse(tokens_of(found, placed), scratch)
    if parsed is None or scratch.has_errors:
        case = next((each for each in found.pieces if each.text == "CASE"), None)
        if case is not None:
            bag.retract(before)
            help_ = "write `IF c THEN a ELSE IF d THEN b ELSE e`, in parentheses beside an operator"
            shown, span = ("CASE WHEN c THEN a … END", "IF c THEN a ELSE …"), placed.span(case.start, case.end)
            bag.error(Code.OTHER_SPELLING, span, help=help_, written=shown[0], meant=shown[1])
        elif _report_sentence(placed, bag, before):
            return None
        elif not found.has_forms and not any(each.meant in _NO_WORDS for each in found.habits):
            _report_parts(found, placed, bag, before, scratch)
        return None
    bag.retract(before)
    _report(found, placed, bag)
    return parsed if found.is_certain else None


def translate(
    text: str, source: SourceFile, parse: Callable[[PlacedText, DiagnosticBag], object | None], always: bool = False
) -> str | None:
    """Return a text in Vesper's spelling, in quotes if YAML requires them. None without a translation."""
    if len(text) > _MAX_TEXT:
        return None
    found = respell(text)
    meant, scratch = found.translation(), DiagnosticBag(source)
    placed = PlacedText(meant, [0] * len(meant), 0)
    if not (found.habits or always) or parse(placed, scratch) is None or scratch.has_errors:
        return None
    return meant if is_plain(meant) else quote_scalar(meant)


def _report(found: Respelling, placed: PlacedText, bag: DiagnosticBag) -> None:
    """Report all habits of an expression as one error. The first one is at the caret."""
    first, *more = sorted(found.habits, key=lambda each: each.start)
    label = f"`{first.meant}`" if more else ""
    also = tuple(Label(placed.span(each.start, each.end), f"`{each.meant}`") for each in more)
    text = " ".join(found.translation().split())
    is_quoted = placed.span(0, 1).start > 0 and bag.source.text[placed.span(0, 1).start - 1] in "'\""
    help_ = f"write `{text if is_quoted or is_plain(text) else quote_scalar(text)}`"
    if first.written == "||" and first.meant == "+":
        help_ += "; for a default in place of null write `??`"
    help_ += "".join(f": {each}" for each in dict.fromkeys(each.note for each in found.habits if each.note))
    span = placed.span(first.start, first.end)
    bag.error(Code.OTHER_SPELLING, span, label, also=also, help=help_, written=first.written, meant=first.meant)


def _report_parts(
    found: Respelling, placed: PlacedText, bag: DiagnosticBag, before: int, scratch: DiagnosticBag
) -> None:
    """Report words and signs, and the remaining errors of the translated expression."""
    bag.retract(before)
    first, *more = sorted(found.habits, key=lambda each: each.start)
    also = tuple(Label(placed.span(each.start, each.end), f"`{each.meant}`") for each in more)
    help_ = f"write {', '.join(dict.fromkeys(f'`{each.meant}`' for each in (first, *more)))}"
    label, span = f"`{first.meant}`" if more else "", placed.span(first.start, first.end)
    bag.error(Code.OTHER_SPELLING, span, label, also=also, help=help_, written=first.written, meant=first.meant)
    bag.adopt(scratch)


def _report_template(placed: PlacedText, bag: DiagnosticBag, before: int) -> bool:
    """Report a text with holes from Python or JavaScript. In Vesper it is a step."""
    match = _TEMPLATE.search(placed.text)
    if match is None:
        return False
    start, quote = match.end(), placed.text[match.end()] if match[0] != "`" else "`"
    start += match[0] != "`"
    end = placed.text.find(quote, start)
    if end < 0:
        return False
    template = placed.text[start:end].replace("${", "{")
    is_whole = not placed.text[: match.start()].strip() and not placed.text[end + 1 :].strip()
    written = placed.text[match.start() : start] + "…" + quote
    bag.retract(before)
    text = f'"{template}"' if '"' not in template else f"'{template}'"
    what = f"write the step with `operation: string_template` and `template: {text}` instead of `value`"
    help_ = what if is_whole else f"give the text a step of its own: `operation: string_template`, `template: {text}`"
    span = placed.span(match.start(), end + 1)
    bag.error(Code.OTHER_SPELLING, span, help=help_, written=written, meant="operation: string_template")
    return True


def _report_grouped_numbers(placed: PlacedText, bag: DiagnosticBag, before: int) -> bool:
    """Report numbers whose thousands are separated by commas."""
    found = grouped_numbers(placed.text)
    if found:
        bag.retract(before)
    for each in found:
        span = placed.span(each.start, each.end)
        bag.error(Code.BAD_NUMBER, span, help=each.help, text=each.written, problem=each.problem)
    return bool(found)


_SENTENCE = re.compile(r"[A-Za-z_][\w'-]*(?:[ ,]+[\w.'-]+){2,}[.!]?")
_MEANT = (
    (r"not (?:be )?(?:empty|blank)", "length({name}) > 0"),
    (r"positive", "{name} > 0"),
    (r"not (?:be )?negative|non-negative", "{name} >= 0"),
    (r"(?:at least|not (?:be )?(?:less|smaller|lower) than) (?P<limit>[0-9.]*[0-9])", "{name} >= {limit}"),
    (r"(?:at most|not (?:be )?(?:more|greater|larger|higher) than|not exceed) (?P<limit>[0-9.]*[0-9])",
     "{name} <= {limit}"),
    (r"(?:more|greater|larger|higher|bigger) than (?P<limit>[0-9.]*[0-9])", "{name} > {limit}"),
    (r"(?:less|smaller|lower) than (?P<limit>[0-9.]*[0-9])", "{name} < {limit}"),
    (r"(?:given|present|set)", "{name} IS NOT NULL"),
)  # fmt: skip
"""Sentences that authors write as conditions, and what they mean."""


def _report_sentence(placed: PlacedText, bag: DiagnosticBag, before: int) -> bool:
    """Report a sentence in the place of a condition, with the condition that it seems to mean."""
    text = " ".join(placed.text.split())
    if _SENTENCE.fullmatch(text) is None or re.search(r"[a-z] +[a-z]", text) is None:
        return False
    words = re.findall(r"[a-z][a-z0-9_]*", text)
    declared = set(re.findall(r"^ +(?:- step: )?([a-z][a-z0-9_]*):? ", bag.source.text, re.MULTILINE))
    name = next((each for each in words if each in declared), words[0])
    subject = f"length({name})" if re.search(r"\b(?:long|letters|characters|items)\b", text) else name
    found = ((re.search(pattern, text), shown) for pattern, shown in _MEANT)
    meant = next((shown.format(name=subject, **match.groupdict()) for match, shown in found if match), None)
    example = f"write `{meant}`" if meant else f"as in `{name} > 0` or `length({name}) > 0`"
    help_ = f"a condition compares values by operators and functions: {example}"
    bag.retract(before)
    span = placed.span(0, len(placed.text))
    bag.error(Code.EXPRESSION_SYNTAX, span, expected="a condition", found="a sentence", help=help_)
    return True


def _report_bare_template(placed: PlacedText, bag: DiagnosticBag, before: int) -> None:
    """Report a text with holes where an expression is expected."""
    text = " ".join(placed.text.split())
    if _BARE_TEMPLATE.fullmatch(text) is None or text[0] in "[{(":
        return
    bag.retract(before)
    help_ = f'write the step with `operation: string_template` and `template: "{text}"` instead of `value`'
    span = placed.span(0, len(placed.text))
    bag.error(Code.OTHER_SPELLING, span, help=help_, written="… {a} …", meant="operation: string_template")


def rescue_binding(
    placed: PlacedText, bag: DiagnosticBag, before: int, parse: Callable[[list[Token], DiagnosticBag], object | None]
) -> PlacedText | None:
    """Report a collection without a name for its items, and return the intended binding.

    The report replaces the errors since `before`.
    """
    text = " ".join(placed.text.split()).removeprefix("FOR ").removeprefix("for ")
    if " IN " not in text and " in " not in text:
        scratch = DiagnosticBag(bag.source)
        over = tokenize(placed, scratch)
        if over is None or parse(over, scratch) is None:
            return None
        names = set(re.findall(r"[a-z_]+", bag.source.text))
        name = _free_name(text, placed, bag.source) or next(
            each for each in ("item", "each", "entry", "one_item") if each not in names or each == "one_item"
        )
        text = f"{name} IN {text}"
    elif text == " ".join(placed.text.split()):
        return None
    bag.retract(before)
    span = placed.span(0, len(placed.text))
    shown = " ".join(placed.text.split())
    bag.error(Code.OTHER_SPELLING, span, help=f"write `{text}`: each item needs a name", written=shown, meant=text)
    meant = respell(text).translation()
    return PlacedText(meant, [span.start] * len(meant), span.end)


def _free_name(collection: str, placed: PlacedText, source: SourceFile) -> str | None:
    """Return the undeclared name that a loop's body uses for its items, such as `line` of `lines`."""
    at = placed.span(0, len(placed.text))
    line, _ = source.position(at.start)
    start = source.text.rfind("\n", 0, at.start) + 1
    indent = re.match(r" *(?:- +)?", source.line_text(line))
    column = 0 if indent is None else indent.end()
    body = re.match(rf"(?:(?: {{{column},}}.*| *)\n)*", source.text[source.text.find("\n", start) + 1 :])
    text = "" if body is None else body[0]
    bound = set(re.findall(r"\b(?:FOR|for|FORALL|EXISTS|LET|over:) +(\w+)", text))
    declared = set(re.findall(r"(\w+)['\"]?(?: *: | *:$)", source.text, re.MULTILINE)) | {"input", "output", "error"}
    declared |= set(re.findall(r"\bstep: +(\w+)", source.text)) | bound
    used = dict.fromkeys(re.findall(r"(?<![\w.'\"])([a-z_]\w*)(?=\.[a-z_])", text))
    free = [each for each in used if each not in declared]
    singular = collection.rpartition(".")[2].removesuffix("s")
    if singular not in declared and re.search(rf"(?<![\w.]){singular}(?!\w)", text):
        return singular
    return free[0] if len(free) == 1 else None


def is_plain(text: str) -> bool:
    """Return whether YAML reads a text on its own line unchanged without quotes."""
    return (
        ": " not in text and " #" not in text and text[:1] not in "'\"[{!&*|>%@`" and not text.startswith(("- ", "? "))
    )


def tokens_of(found: Respelling, placed: PlacedText) -> list[Token]:
    """Return the translated tokens. Each has the span of its original text."""
    return [*(_token(piece, placed) for piece in found.pieces), Token(END, "", placed.span(len(placed.text), 0))]


def _token(piece: Piece, placed: PlacedText) -> Token:
    span = placed.span(piece.start, piece.end)
    if piece.kind != "string":
        return Token(_KINDS.get(piece.kind, SIGN), piece.text, span)
    text = piece.text[1:-1]
    offsets = placed.offsets[piece.start + 1 : piece.end]
    return Token(STRING, text, span, [span.start] * (len(text) + 1) if piece.is_new else offsets)
