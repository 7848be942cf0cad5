"""Symbols and types in words, for hovers and the documentation of completions."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from vesper.language.check.scope import Declared
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax import ast, library_ast
from vesper.lsp.features.knowledge import Knowledge, knowledge
from vesper.lsp.features.ranges import Ranges, show_range
from vesper.lsp.features.reference import WORDS, describe_operation, functions
from vesper.lsp.features.symbols import Occurrence, Occurrences, Symbol
from vesper.lsp.view import View

_OCCURRENCES: WeakKeyDictionary[Knowledge, Occurrences] = WeakKeyDictionary()
_RANGES: WeakKeyDictionary[Knowledge, Ranges | None] = WeakKeyDictionary()
_MAX_DECLARATION_LINES = 12


def occurrences(known: Knowledge) -> Occurrences:
    """Return the occurrences of a file, computed once."""
    found = _OCCURRENCES.get(known)
    if found is None:
        found = _OCCURRENCES[known] = Occurrences(known)
    return found


def ranges(known: Knowledge) -> Ranges | None:
    """Return the possible values in a node without errors, computed once."""
    if known not in _RANGES:
        _RANGES[known] = None if known.node is None else Ranges(known.node)
    return _RANGES[known]


def owner_view(view: View, symbol: Symbol) -> View | None:
    """Return the file that declares a symbol."""
    owner = symbol.name if symbol.kind in ("node", "library") else symbol.owner.partition("@")[0].partition(".")[0]
    known = knowledge(view)
    if known is not None and (owner == known.id or symbol.kind == "member"):
        return view
    path = view.collection.ids(view.path).get(owner)
    return None if path is None else view.collection.view(path)


def called(view: View, word: str) -> Knowledge | None:
    """Return what is known about the node that a word in `node:` or before `(` names."""
    path = view.collection.resolve(view.path, word)
    there = None if path is None else view.collection.view(path)
    return None if there is None else knowledge(there)


def declaration(view: View, symbol: Symbol) -> tuple[View, Knowledge, Occurrence] | None:
    """Return where a symbol is declared."""
    there = owner_view(view, symbol)
    known = None if there is None else knowledge(there)
    if there is None or known is None:
        return None
    found = next((each for each in occurrences(known).of({symbol}) if each.is_declaration), None)
    return None if found is None else (there, known, found)


def declared_name(known: Knowledge, start: int) -> Declared | None:
    """Return what the checker knows about the name that is declared at an offset."""
    scope = None if known.checker is None else known.checker.scope
    tables = () if scope is None else (scope.names, scope.outputs, scope.errors, scope.ended)
    for table in tables:
        for each in table.values():
            if each.span.start == start and each.library is None:
                return each
    return next((each for fact in known.facts for each in fact.visible if each.span.start == start), None)


def describe(view: View, symbol: Symbol) -> str | None:
    """Return a symbol in Markdown; None where nothing is known about it."""
    if symbol.kind == "operation":
        specs = functions().get(symbol.name, ())
        return "\n\n---\n\n".join(describe_operation(each) for each in specs) or WORDS.get(symbol.name)
    if symbol.kind == "member":
        return f"```\n{symbol.name}\n```\n\nA member of `{symbol.owner}`."
    found = declaration(view, symbol)
    if found is None:
        return None
    there, known, occurrence = found
    if symbol.kind in ("node", "library"):
        return describe_file(known)
    of = "" if there.path == view.path else f" of `{known.id}`"
    part = _declaring_part(known, occurrence)
    match part:
        case ast.Function():
            shown, more = function_signature(known.source, part), ["A function" + of]
        case ast.RecordType() | ast.NamedType():
            return f"```yaml\n{declared_text(known, part)}\n```\n\nA type{of}."
        case _:
            shown, more = _typed(known, symbol, occurrence, part)
            more[0] += of
    return f"```\n{shown}\n```\n\n" + ". ".join(more) + "."


def _declaring_part(known: Knowledge, occurrence: Occurrence) -> object:
    """Return the part of the document that has the name: an input, a constant, a function, a step …"""
    names = ((each, getattr(each, "name", None)) for each in known.parts)
    start = occurrence.span.start
    return next((each for each, name in names if isinstance(name, ast.Word) and name.span.start == start), None)


def _typed(known: Knowledge, symbol: Symbol, occurrence: Occurrence, part: object) -> tuple[str, list[str]]:
    """Return a name with its type, and what else is known about it."""
    declared = declared_name(known, occurrence.span.start)
    written = getattr(part, "type", None)
    if declared is not None and declared.type is not None:
        type_ = str(declared.type)
    else:
        type_ = known.source.slice(written.span) if written is not None else "?"
    kind = {"local": "name bound here", "error": "error field", "step": "value of a step"}.get(symbol.kind, symbol.kind)
    shown, more = f"{symbol.name}: {type_}", [f"{'An' if kind[0] in 'aeiou' else 'A'} {kind}"]
    match part:
        case ast.Constant(value=value):
            shown += f" = {_one_line(known.source.slice(value.span))}"
        case ast.Input(constraints=constraints, default=default):
            if constraints:
                more.append("Constraints: " + ", ".join(f"`{known.source.slice(each.span)}`" for each in constraints))
            if default is not None:
                more.append(f"Default: `{_one_line(known.source.slice(default.span))}`")
            values = ranges(known)
            known_values = None if values is None else values.inputs.get(symbol.name)
            if (text := show_range(known_values, None if declared is None else declared.type)) is not None:
                more.append(f"Values: {text}")
        case library_ast.Parameter(entries=entries, unit=unit, reference=reference):
            more += [f"{each.since.text}: `{_one_line(known.source.slice(each.value.span))}`" for each in entries]
            more += [text for text in (unit, reference) if text is not None]
    return shown, more


def describe_file(known: Knowledge) -> str:
    """Return the intent, inputs and outputs of a node, or the definitions of a library."""
    document = known.document
    if isinstance(document, library_ast.Library):
        names = [each.name.text for each in (*document.types, *document.constants, *document.functions)]
        return f"```\nlibrary {known.id}\n```\n\n{document.intent.text}\n\nDefines: " + ", ".join(
            f"`{name}`" for name in names
        )
    parts: list[tuple[str, Iterable[ast.Input | ast.Output]]] = [
        ("inputs", document.inputs), ("outputs", document.outputs), ("errors", document.errors)
    ]  # fmt: skip
    lines = [f"{document.type.text} {known.id}"]
    lines += [f"{word}: {_parts(known.source, listed)}" for word, listed in parts if listed]
    return "```\n" + "\n".join(lines) + f"\n```\n\n{document.intent.text}"


def _parts(source: SourceFile, listed: Iterable[ast.Input | ast.Output]) -> str:
    return ", ".join(f"{each.name.text}: {source.slice(each.type.span)}" for each in listed)


def function_signature(source: SourceFile, function: ast.Function) -> str:
    """Return a declared function with its parameters and result."""
    returns = "" if function.returns is None else f" -> {source.slice(function.returns.span)}"
    return f"{function.name.text}({_parts(source, function.parameters)}){returns}"


def declared_text(known: Knowledge, part: ast.RecordType | ast.NamedType) -> str:
    """Return the lines of a declared type as written."""
    lines = known.source.text[known.source.text.rfind("\n", 0, part.name.span.start) + 1 :].split("\n")
    margin = len(lines[0]) - len(lines[0].lstrip())
    taken = [lines[0][margin:]]
    for line in lines[1:_MAX_DECLARATION_LINES]:
        if line.strip() and len(line) - len(line.lstrip()) <= margin:
            break
        taken.append(line[margin:])
    return "\n".join(taken).rstrip()


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 120 else f"{flat[:119]}…"
