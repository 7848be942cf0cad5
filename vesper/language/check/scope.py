"""What a name means where it stands: inputs, constants, steps above, outputs in postconditions, names bound on the
way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.values.types import Type


@dataclass(slots=True, eq=False)
class Declared:
    """Something that has a name. Two are the same only if they are one object."""

    kind: str
    name: str
    type: Type | None
    """None when its declaration is wrong already: then nothing more is said about its uses."""
    span: Span
    number: int = 0
    """Of a local: its number in the IR."""
    used: bool = False
    ir_name: str | None = None
    """Of a step: what its value is called in the IR, where that is not its name."""

    def describe(self) -> str:
        kind = "name bound here" if self.kind == "local" else self.kind
        return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


@dataclass(slots=True)
class Scope:
    """The names of one node. Inputs, constants and steps share one namespace; outputs have their own.

    A name that an expression binds (`LET`, `FOR`) may not be any of those: a name means one thing wherever it is seen.
    """

    names: dict[str, Declared] = field(default_factory=dict)
    outputs: dict[str, Declared] = field(default_factory=dict)
    errors: dict[str, Declared] = field(default_factory=dict)
    """The fields of declared errors."""
    in_postcondition: bool = False
    """In postconditions and invariants."""
    in_invariant: bool = False
    locals: dict[str, Declared] = field(default_factory=dict)
    local_count: int = 0
    gone: dict[str, Declared] = field(default_factory=dict)
    """Steps of blocks that have ended: nobody sees them, and their names stay taken."""
    has_clock: bool = False
    """Whether `now()` means something here."""
    is_start: bool = False
    """Inside `old(…)`."""
    in_function: bool = False
    equal_to_a_value: set[int] = field(default_factory=set)
    """Comparisons `==` (by `id`) of what may be null with what may not: where one holds, the former is not null."""

    def declare(self, kind: str, word: ast.Word, type_: Type | None, bag: DiagnosticBag) -> Declared:
        """Add a name for the rest of its block, or report who has it."""
        table = {"output": self.outputs, "error": self.errors}.get(kind, self.names)
        other = table.get(word.text) or (self.gone.get(word.text) if table is self.names else None)
        declared = Declared(kind, word.text, type_, word.span)
        if other is None and table is self.names:
            other = self.locals.get(word.text)
        if other is None:
            table[word.text] = declared
        else:
            _report_taken("an output" if kind == "output" else f"this {kind}", word, other, bag)
        return declared

    @contextmanager
    def block(self) -> Iterator[None]:
        """What is declared inside is not seen after it."""
        outside = set(self.names)
        try:
            yield
        finally:
            for name in [name for name in self.names if name not in outside]:
                self.gone[name] = self.names.pop(name)

    @contextmanager
    def at_the_start(self) -> Iterator[None]:
        """Inside `old(…)`: bare names are inputs and constants."""
        outer, self.is_start = self.is_start, True
        try:
            yield
        finally:
            self.is_start = outer

    @contextmanager
    def bound(self, word: ast.Word, type_: Type | None, bag: DiagnosticBag) -> Iterator[Declared]:
        """A name for the length of an expression."""
        other = self.locals.get(word.text) or self.find(word.text)
        if other is not None:
            _report_taken("a bound name", word, other, bag)
        local = Declared("local", word.text, type_, word.span, self.local_count)
        self.local_count += 1
        outer = self.locals.get(word.text)
        self.locals[word.text] = local
        try:
            yield local
        finally:
            if outer is None:
                del self.locals[word.text]
            else:
                self.locals[word.text] = outer

    def find(self, name: str) -> Declared | None:
        """What a bare name means: in postconditions outputs come first, and steps are not seen."""
        if name in self.locals:
            return self.locals[name]
        if self.in_postcondition:
            found = self.names.get(name)
            if not self.is_start and not self.in_invariant:
                found = self.outputs.get(name) or found
            return None if found is None or found.kind == "step" else found
        return self.names.get(name)

    def member(self, scope: str, name: str) -> Declared | None:
        """What `input.name`, `output.name` or `error.name` means."""
        if scope == "output":
            return self.outputs.get(name) if self.in_postcondition and not self.is_start else None
        if scope == "error":
            return self.errors.get(name) if self.in_invariant and not self.is_start else None
        found = self.names.get(name)
        return found if found is not None and found.kind == "input" else None

    def visible(self) -> list[Declared]:
        """Everything a bare name could mean here."""
        names = {**self.names, **self.outputs} if self.in_postcondition and not self.in_invariant else self.names
        return [found for name in (*names, *self.locals) if (found := self.find(name)) is not None]

    def kinds(self) -> str:
        if self.in_invariant or self.is_start:
            return "no input or constant"
        if self.in_function:
            return "no parameter or constant"
        return "no output, input or constant" if self.in_postcondition else "no input, constant or earlier step"


def _report_taken(what: str, word: ast.Word, other: Declared, bag: DiagnosticBag) -> None:
    also = (Label(other.span, f"{other.describe()} is declared here"),)
    bag.error(Code.NAME_TAKEN, word.span, also=also, what=what, name=word.text, other=other.describe())
