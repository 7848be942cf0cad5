"""Diagnostics for expressions and types in the spelling of another language.

Called after parsing failed. Where the translation parses, its one diagnostic replaces those of the parser, and the
check goes on with the translated expression, so that an odd spelling hides no other problem.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.expression_slot import quote_scalar
from vesper.language.syntax.habits.forms import Respelling, respell
from vesper.language.syntax.habits.pieces import Piece
from vesper.language.syntax.habits.type_forms import respell_type
from vesper.language.syntax.scalar_text import PlacedText
from vesper.language.syntax.tokens import END, NAME, NUMBER, SIGN, STRING, WORD, Token, tokenize
from vesper.language.syntax.yaml_tree import Scalar

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
    """Report habits instead of the errors since `before`; return what was meant, if that is certain."""
    if len(placed.text) > _MAX_TEXT or any(each.code not in _REPLACED for each in bag.errors_since(before)):
        return None
    if _report_template(placed, bag, before):
        return None
    found = respell(placed.text)
    if not found.habits:
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
        elif not found.has_forms and not any(each.meant in _NO_WORDS for each in found.habits):
            _report_parts(found, placed, bag, before, scratch)
        return None
    bag.retract(before)
    _report(found, placed, bag)
    return parsed if found.is_certain else None


def translate(
    text: str, source: SourceFile, parse: Callable[[PlacedText, DiagnosticBag], object | None], always: bool = False
) -> str | None:
    """Return a text in our spelling, in quotes where YAML needs them; None if it has none, or nothing to translate."""
    if len(text) > _MAX_TEXT:
        return None
    found = respell(text)
    meant, scratch = found.translation(), DiagnosticBag(source)
    placed = PlacedText(meant, [0] * len(meant), 0)
    if not (found.habits or always) or parse(placed, scratch) is None or scratch.has_errors:
        return None
    return meant if is_plain(meant) else quote_scalar(meant)


def _report(found: Respelling, placed: PlacedText, bag: DiagnosticBag) -> None:
    """Report all habits of an expression as one error: the first at the caret, the others beside it."""
    first, *more = sorted(found.habits, key=lambda each: each.start)
    label = f"`{first.meant}`" if more else ""
    also = tuple(Label(placed.span(each.start, each.end), f"`{each.meant}`") for each in more)
    text = " ".join(found.translation().split())
    is_quoted = placed.span(0, 1).start > 0 and bag.source.text[placed.span(0, 1).start - 1] in "'\""
    help_ = f"write `{text if is_quoted or is_plain(text) else quote_scalar(text)}`"
    if first.written == "||" and first.meant == "+":
        help_ += "; for a default in place of null write `??`"
    span = placed.span(first.start, first.end)
    bag.error(Code.OTHER_SPELLING, span, label, also=also, help=help_, written=first.written, meant=first.meant)


def _report_parts(
    found: Respelling, placed: PlacedText, bag: DiagnosticBag, before: int, scratch: DiagnosticBag
) -> None:
    """Report words and signs, and what else keeps the expression from being one."""
    bag.retract(before)
    first, *more = sorted(found.habits, key=lambda each: each.start)
    also = tuple(Label(placed.span(each.start, each.end), f"`{each.meant}`") for each in more)
    help_ = f"write {', '.join(dict.fromkeys(f'`{each.meant}`' for each in (first, *more)))}"
    label, span = f"`{first.meant}`" if more else "", placed.span(first.start, first.end)
    bag.error(Code.OTHER_SPELLING, span, label, also=also, help=help_, written=first.written, meant=first.meant)
    bag.adopt(scratch)


def _report_template(placed: PlacedText, bag: DiagnosticBag, before: int) -> bool:
    """Report a text with holes of Python or JavaScript, which here is a step."""
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
    """Report a collection without a name for its items instead of the errors since `before`; return the binding."""
    text = " ".join(placed.text.split()).removeprefix("FOR ").removeprefix("for ")
    if " IN " not in text and " in " not in text:
        scratch = DiagnosticBag(bag.source)
        over = tokenize(placed, scratch)
        if over is None or parse(over, scratch) is None:
            return None
        names = set(re.findall(r"[a-z_]+", bag.source.text))
        name = next(each for each in ("item", "each", "entry", "one_item") if each not in names or each == "one_item")
        text = f"{name} IN {text}"
    elif text == " ".join(placed.text.split()):
        return None
    bag.retract(before)
    span = placed.span(0, len(placed.text))
    shown = " ".join(placed.text.split())
    bag.error(Code.OTHER_SPELLING, span, help=f"write `{text}`: each item needs a name", written=shown, meant=text)
    meant = respell(text).translation()
    return PlacedText(meant, [span.start] * len(meant), span.end)


def is_plain(text: str) -> bool:
    """Return whether YAML reads a text on a line of its own as it is, without quotes."""
    return (
        ": " not in text and " #" not in text and text[:1] not in "'\"[{!&*|>%@`" and not text.startswith(("- ", "? "))
    )


def rescue_type(scalar: Scalar, bag: DiagnosticBag, before: int) -> PlacedText | None:
    """Report a type in another spelling instead of the errors since `before`; return what was meant."""
    meant = respell_type(scalar.text)
    if meant is None:
        return None
    bag.retract(before)
    help_ = f"write `{meant}`"
    bag.error(Code.OTHER_SPELLING, scalar.span, help=help_, written=scalar.text, meant=meant)
    return PlacedText(meant, [scalar.span.start] * len(meant), scalar.span.end)


def tokens_of(found: Respelling, placed: PlacedText) -> list[Token]:
    """Return the translated tokens; each has the span of the text that it comes from."""
    return [*(_token(piece, placed) for piece in found.pieces), Token(END, "", placed.span(len(placed.text), 0))]


def _token(piece: Piece, placed: PlacedText) -> Token:
    span = placed.span(piece.start, piece.end)
    if piece.kind != "string":
        return Token(_KINDS.get(piece.kind, SIGN), piece.text, span)
    text = piece.text[1:-1]
    offsets = placed.offsets[piece.start + 1 : piece.end]
    return Token(STRING, text, span, [span.start] * (len(text) + 1) if piece.is_new else offsets)
