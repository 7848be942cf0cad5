"""Relations of functions: a call and its body, an expression and a function of it."""

from __future__ import annotations

import random
import re

from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.types import ArrayOf, MapOf, OptionalOf, Record, SetOf, Type
from vesper.verify.programs.types import type_text
from vesper.verify.relations.operators import rewrite_sites
from vesper.verify.relations.rewritings import Relation, Rewriting, edited
from vesper.verify.relations.subject import Data, Edits, Site, Subject, bound_names

_MAX_SITES = 2
EXTRACTED = (ast.Infix, ast.Call, ast.Field, ast.Index, ast.If, ast.Aggregate, ast.Comprehension, ast.Quantifier,
             ast.Prefix, ast.IsNull, ast.InRange)  # fmt: skip


def written_type(subject: Subject, type_: Type | None) -> str | None:
    """Return a type as the document can write it; None for a record without a name in it."""
    # Constraints, also those of parts, are checked wherever a name of a type is written.
    has_constraints = any(each.constraints for each in subject.document.types)
    names = set() if has_constraints else {each.name.text for each in subject.document.types}
    return None if type_ is None or not _can_be_written(type_, names) else type_text(type_)


def _can_be_written(type_: Type, names: set[str]) -> bool:
    match type_:
        case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner):
            return _can_be_written(inner, names)
        case MapOf(key, value):
            return _can_be_written(key, names) and _can_be_written(value, names)
        case Record(name=name):
            return name in names
        case _:
            return True


def free_names(expression: ast.Expression) -> list[ast.Name]:
    """Return the names that an expression does not bind itself, in source order."""
    found: list[ast.Name] = []
    waiting = [(expression, frozenset[str]())]
    while waiting:
        part, bound = waiting.pop()
        if isinstance(part, ast.Name) and part.text not in bound:
            found.append(part)
        inner = bound | bound_names(part)
        waiting += [(each, inner) for each in reversed(ast.parts(part))]
    return found


def _inline(subject: Subject, site: Site, chance: random.Random) -> str | None:
    """Replace a call by the function's body, with the parameters bound by a LET."""
    assert isinstance(site.expression, ast.Call)
    call = site.expression
    function = next((each for each in subject.document.functions if each.name.text == call.function.text), None)
    if function is None or call.binding is not None or isinstance(function.value, ast.DecisionTable):
        return None
    if not _has_own_type(subject, function.value, site.span):
        return None
    body = subject.text_of(function.value.span) if subject.scalar_at(function.value.span) else None
    if body is None or any(subject.type_at(each.span) is None for each in call.arguments):
        return None
    inner = sorted({name for part in _all_parts(function.value) for name in bound_names(part)})
    for name in inner:  # a local must differ from every name in scope
        body = _replace_word(body, name, subject.fresh(chance, "inner"))
    bindings = []
    for parameter, argument in zip(function.parameters, call.arguments, strict=True):
        name = subject.fresh(chance, "bound")
        body = _replace_word(body, parameter.name.text, name)
        bindings.append(f"{name} = ({subject.text_of(argument.span)})")
    return f"(LET {', '.join(bindings)} IN {body})" if bindings else f"({body})"


def _replace_word(text: str, word: str, new: str) -> str:
    """Replace a name outside strings, but not a field, a call or a key of that name."""
    pieces = re.split(r"('[^']*'|\"[^\"]*\")", text)
    pattern = re.compile(rf"(?<![\w.]){re.escape(word)}(?!\w)(?!\s*\()(?!\s*:)")
    return "".join(piece if index % 2 else pattern.sub(new, piece) for index, piece in enumerate(pieces))


def _all_parts(expression: ast.Expression) -> list[ast.Expression]:
    found, waiting = list[ast.Expression](), [expression]
    while waiting:
        found.append(waiting.pop())
        waiting += ast.parts(found[-1])
    return found


def _has_own_type(subject: Subject, body: ast.Expression, call: Span) -> bool:
    """Return whether the results of a body have the declared type in every place."""
    declared = subject.type_at(call)
    match body:
        case ast.If(then=then, otherwise=otherwise):
            return _has_own_type(subject, then, call) and _has_own_type(subject, otherwise, call)
        case ast.Let(body=inner):
            return _has_own_type(subject, inner, call)
        case ast.Number(text=text):
            return subject.type_at(body.span) == declared and "." in text
        case ast.Infix() | ast.Call() | ast.Quantifier() | ast.IsNull() | ast.InRange() | ast.Boolean():
            return declared is not None and subject.type_at(body.span) == declared
        case _:
            return False


def _extract(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Replace expressions by calls of new functions of their names."""
    edits = Edits(subject)
    sites = [site for site in subject.of_kind(*EXTRACTED) if site.section not in ("types", "functions")]
    chance.shuffle(sites)
    for site in sites:
        if len(edits.spans()) >= min(subject.max_sites, _MAX_SITES):
            break
        made = _function_of(subject, site, chance) if edits.is_free(site.span) else None
        if made is not None:
            call, name, declared = made
            if edits.replace(site.span, call):
                edits.declare("functions", name, declared)
    return edited(edits) if edits.spans() else None


def _function_of(subject: Subject, site: Site, chance: random.Random) -> tuple[str, str, dict[str, Data]] | None:
    """Return the call, name and declaration of a function of an expression."""
    returns = written_type(subject, subject.type_at(site.span))
    if returns is None or not _is_from_names_alone(site.expression):
        return None
    parameters: dict[str, Data] = {}
    arguments: dict[str, str] = {}
    texts: list[tuple[Span, str]] = []
    for name in free_names(site.expression):
        found = subject.checked_at(name.span)
        if len(found) != 1:
            return None
        if isinstance(found[0], ir.Literal) or (isinstance(found[0], ir.Ref) and found[0].kind == "constant"):
            continue
        if name.text not in arguments:
            type_ = written_type(subject, found[0].type)
            if type_ is None or not isinstance(found[0], ir.Ref | ir.Local):
                return None
            arguments[name.text] = subject.fresh(chance, "given")
            parameters[arguments[name.text]] = type_
        texts.append((name.span, arguments[name.text]))
    function = subject.fresh(chance, "extracted")
    value = substitute(subject, site.span, texts)
    declared: dict[str, Data] = {"params": parameters} if parameters else {}
    return f"{function}({', '.join(arguments)})", function, {**declared, "returns": returns, "value": value}


def _is_from_names_alone(expression: ast.Expression) -> bool:
    """Return whether an expression can be the body of a function, which cannot read `input.x`, `old(x)` or `now()`."""
    for part in _all_parts(expression):
        match part:
            case ast.Field(base=ast.Name(text="input" | "output" | "error")):
                return False
            case ast.Template() | ast.JsonTree() | ast.JsonLiteral():
                return False
            case ast.Call(function=ast.Word(text="old" | "now")):
                return False
    return True


def substitute(subject: Subject, span: Span, texts: list[tuple[Span, str]]) -> str:
    """Return the text of a span with parts of it replaced."""
    source = subject.text_of(span)
    result, position = "", 0
    for part, text in sorted(texts, key=lambda each: each[0].start):
        start, end = subject.offset_in(span, part)
        result += source[position:start] + text
        position = end
    return result + source[position:]


RELATIONS = (
    Relation("inlined_functions", "a call is the body with its arguments bound", rewrite_sites((ast.Call,), _inline)),
    Relation("extracted_functions", "an expression is a call of a function of its names", _extract),
)
