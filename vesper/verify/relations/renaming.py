"""Relations of names: a name replaced by another one wherever the document spells it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial

from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Scalar, Tree
from vesper.verify.relations.layouts import block_text
from vesper.verify.relations.rewritings import Relation, Rewriting
from vesper.verify.relations.subject import Edits, Subject, entry

_ODD_NAMES = ("self", "def", "lambda", "yield", "none", "len", "result", "context", "str", "int", "async", "r_0")
"""Names that generated Python must escape or may use itself."""
_MAX_NAMES = 4
_ALIKE_SHARE = 0.6
"""Share of the new names that differ in their last digit only."""
_WORD = re.compile(r"\w+")


class Spellings:
    """Where a document declares and uses each name, by kind of declaration."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.kinds: dict[str, set[str]] = {}
        self.declared: dict[str, set[tuple[int, int]]] = {}
        self.spans: dict[str, set[tuple[int, int]]] = {}
        self.blocked: set[str] = set()
        """Spellings that also are a field, a member or a word of configuration."""
        document = subject.document
        for kind, declared in (("input", document.inputs), ("output", document.outputs),
                               ("constant", document.constants), ("function", document.functions)):  # fmt: skip
            for each in declared:
                self._declare(each.name, kind)
        for function in document.functions:
            for parameter in function.parameters:
                self._declare(parameter.name, "local")
        for part in (document.flow, document.preconditions, document.postconditions, document.invariants,
                     [each.value for each in document.functions]):  # fmt: skip
            self._visit(part)
        self._visit([each.constraints for each in document.types], is_type=True)
        self._visit([document.inputs, document.outputs, document.errors, document.constants, document.types], True)
        self._visit([(each.parameters, each.returns) for each in document.functions])
        for type_ in document.types:
            names = [part.name.text for part in type_.fields] if isinstance(type_, ast.RecordType) else ["value"]
            self.blocked.update(names)
        for section in ("security", "policies", "performance"):
            self.blocked.update(scalar.text for scalar in _scalars(entry(subject.tree, section)))
        self.blocked |= {"event_id", "items", "collected"}

    def _declare(self, word: ast.Word, kind: str) -> None:
        self.kinds.setdefault(word.text, set()).add(kind)
        self.declared.setdefault(word.text, set()).add((word.span.start, word.span.end))
        self._use(word)

    def _use(self, word: ast.Word | ast.Name) -> None:
        if self._subject.source.slice(word.span) != word.text:
            self.blocked.add(word.text)
        self.spans.setdefault(word.text, set()).add((word.span.start, word.span.end))

    def _visit(self, part: object, is_type: bool = False) -> None:
        match part:
            case ast.Name():
                if is_type:
                    self.blocked.add(part.text)
                else:
                    self._use(part)
            case ast.Field(base=ast.Name(text="input" | "output"), name=name):
                self._use(name)
            case ast.Step(name=ast.Word() as name):
                self._declare(name, "step")
            case ast.Return(values=values):
                for word, value in values:
                    self._use(word)
                    self._visit(value)
                return
            case ast.Let(name=name):
                self._declare(name, "local")
            case ast.Binding(names=names):
                for name in names:
                    self._declare(name, "local")
            case ast.Call(function=function, named=named):
                if any(each.name.text == function.text for each in self._subject.document.functions):
                    self._use(function)
                for name, _ in named:
                    self._declare(name, "local")
            case ast.Loop(state=state):
                self.blocked.update(each.name.text for each in state)  # fields of the loop's value
            case ast.TypeEnum(members=members):
                self.blocked.update(each.text for each in members)
            case (ast.Word() as word, ast.Name() as name) if word.span == name.span:
                self.blocked.add(word.text)  # also the name of a parameter
            case ast.RecordLiteral(entries=entries):
                self.blocked.update(word.text for word, _ in entries)
            case ast.Row(cells=cells):  # a column may be a name in scope, and a cell may mention names
                self.blocked.update(word.text for word, _ in cells)
                self.blocked.update(found for _, cell in cells for found in _WORD.findall(cell.text.text))
            case ast.TableOutput(name=name, values=values):
                self.blocked.update((name.text, *(scalar.text for tree in values for scalar in _scalars(tree))))
            case ast.Column(name=name, allowed=allowed):
                self.blocked.update(
                    (name.text, *(found for cell in allowed for found in _WORD.findall(cell.text.text)))
                )
            case _:
                pass
        for each in _parts(part):
            self._visit(each, is_type)


def _parts(part: object) -> Iterator[object]:
    if isinstance(part, Span | Scalar | ast.Word) or part is None:
        return
    if isinstance(part, tuple | list):
        yield from part
    elif isinstance(part, dict):
        yield from part.values()
    elif is_dataclass(part):
        yield from (getattr(part, field.name) for field in fields(part))


def _scalars(tree: Tree | None) -> Iterator[Scalar]:
    if isinstance(tree, Scalar):
        yield tree
    elif tree is not None:
        children = tree.entries if hasattr(tree, "entries") else tuple((None, item) for item in tree.items)
        for key, value in children:
            yield from () if key is None else (key,)
            yield from _scalars(value)


def _rename(
    wanted: frozenset[str], optional: frozenset[str], subject: Subject, chance: random.Random
) -> Rewriting | None:
    """Rename names that have every wanted kind of declaration, and none that is not optional."""
    found = Spellings(subject)
    names = [
        name
        for name, kinds in sorted(found.kinds.items())
        if wanted <= kinds <= wanted | optional and name not in found.blocked
    ]
    chance.shuffle(names)
    edits, renamed = Edits(subject), dict[str, str]()
    for name in names[:_MAX_NAMES]:
        new = _new_name(subject, chance)
        if not all(edits.replace(Span(*span), new) for span in sorted(found.spans[name])):
            return None
        renamed[name] = new
    if not renamed:
        return None
    kept = {} if wanted == {"local"} else renamed
    return Rewriting(block_text(edits.tree()), partial(_convert, renamed if "input" in wanted else {}), kept, not kept)


def _new_name(subject: Subject, chance: random.Random) -> str:
    name = chance.choice(_ODD_NAMES)
    if name in subject.words or chance.random() < _ALIKE_SHARE:
        return subject.fresh(chance, "renamed")
    subject.words.add(name)
    return name


def _convert(names: Mapping[str, str], inputs: Mapping[str, object]) -> dict[str, object]:
    return {names.get(name, name): value for name, value in inputs.items()}


def _relation(kind: str, *optional: str) -> Relation:
    rewrite = partial(_rename, frozenset((kind,)), frozenset(optional))
    return Relation(f"renamed_{kind}s", f"renamed {kind}s keep the outcomes, under the mapping", rewrite, True)


RELATIONS = (
    _relation("local"),
    _relation("step"),
    _relation("function"),
    _relation("constant"),
    _relation("input"),
    _relation("output", "step"),
)
