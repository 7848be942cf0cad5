"""Names and their meaning: inputs, constants, earlier steps, bound names, outputs, error fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.values.types import Type


@dataclass(slots=True, eq=False)
class Declared:
    """A declared name. Instances compare by identity."""

    kind: str
    name: str
    type: Type | None
    """None when the declaration is faulty; uses of the name are then not reported."""
    span: Span
    number: int = 0
    """Number of a local in the IR."""
    used: bool = False
    ir_name: str | None = None
    """Name in the IR, where it differs: of a step's value, and of a library's constant until the node names it."""
    library: str | None = None
    """The library that declares it; the span is that of its use."""

    def describe(self) -> str:
        """Return the kind with its article, for messages."""
        kind = "name bound here" if self.kind == "local" else self.kind
        of = "" if self.library is None else f" of `{self.library}`"
        return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}{of}"


@dataclass(slots=True)
class Scope:
    """The names of one node.

    Inputs, constants and steps share one namespace; outputs have their own. A name that an expression binds (`LET`,
    `FOR`) must differ from all of them, so a name has one meaning wherever it is visible.
    """

    names: dict[str, Declared] = field(default_factory=dict)
    outputs: dict[str, Declared] = field(default_factory=dict)
    errors: dict[str, Declared] = field(default_factory=dict)
    """Fields of declared errors, by name."""
    in_postcondition: bool = False
    """True in postconditions and in invariants."""
    in_invariant: bool = False
    locals: dict[str, Declared] = field(default_factory=dict)
    local_count: int = 0
    ended: dict[str, Declared] = field(default_factory=dict)
    """Steps of ended blocks. They are no longer visible, and their names stay reserved."""
    observed: dict[str, tuple[Declared, Declared]] = field(default_factory=dict)
    """Observed values before and after the flow, while a clause about them is checked."""
    has_clock: bool = False
    """Whether `now()` is allowed here."""
    is_start: bool = False
    """True inside `old(…)`."""
    in_function: bool = False
    equal_to_a_value: set[int] = field(default_factory=set)
    """`id` of each `==` that compares an optional with a value that has no null.

    Where it holds, the optional is not null.
    """

    def declare(self, kind: str, word: ast.Word, type_: Type | None, bag: DiagnosticBag) -> Declared:
        """Add a name for the rest of its block, or report an existing declaration."""
        table = {"output": self.outputs, "error": self.errors}.get(kind, self.names)
        other = table.get(word.text) or (self.ended.get(word.text) if table is self.names else None)
        declared = Declared(kind, word.text, type_, word.span)
        if other is None and table is self.names:
            other = self.locals.get(word.text)
        if other is None:
            table[word.text] = declared
        else:
            report_taken("an output" if kind == "output" else f"this {kind}", word, other, bag)
        return declared

    @contextmanager
    def block(self) -> Iterator[None]:
        """Hide names that are declared inside the block after its end."""
        outside = set(self.names)
        try:
            yield
        finally:
            for name in [name for name in self.names if name not in outside]:
                self.ended[name] = self.names.pop(name)

    def reopen(self, names: Iterable[str]) -> None:
        """Show steps of ended blocks again. After a `parallel` the steps of its members are visible."""
        for name in names:
            if name in self.ended:
                self.names[name] = self.ended.pop(name)

    @contextmanager
    def at_start(self) -> Iterator[None]:
        """Resolve bare names as in `old(…)`: only to inputs and constants."""
        outer, self.is_start = self.is_start, True
        try:
            yield
        finally:
            self.is_start = outer

    @contextmanager
    def bind(self, word: ast.Word, type_: Type | None, bag: DiagnosticBag) -> Iterator[Declared]:
        """Bind a name for the duration of an expression."""
        other = self.locals.get(word.text) or self.find(word.text)
        if other is not None:
            report_taken("a bound name", word, other, bag)
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
        """Return the declaration of a bare name. In postconditions outputs come first and steps are hidden."""
        if name in self.locals:
            return self.locals[name]
        if self.in_postcondition:
            if name in self.observed:
                return self.observed[name][0 if self.is_start else 1]
            if not self.is_start and not self.in_invariant and name in self.outputs:
                return self.outputs[name]
            found = self.names.get(name)
            return None if found is None or found.kind == "step" else found
        return self.names.get(name)

    def member(self, scope: str, name: str) -> Declared | None:
        """Return the declaration of `input.name`, `output.name` or `error.name`."""
        if scope == "output":
            return self.outputs.get(name) if self.in_postcondition and not self.is_start else None
        if scope == "error":
            return self.errors.get(name) if self.in_invariant and not self.is_start else None
        found = self.names.get(name)
        return found if found is not None and found.kind == "input" else None

    def visible(self) -> list[Declared]:
        """Return every declaration that a bare name can refer to here."""
        names = {**self.names, **self.outputs} if self.in_postcondition and not self.in_invariant else self.names
        return [found for name in (*names, *self.locals) if (found := self.find(name)) is not None]

    def kinds(self) -> str:
        """Return the kinds of names that are visible here, negated, for a message."""
        if self.in_invariant or self.is_start:
            return "no input or constant"
        if self.in_function:
            return "no parameter or constant"
        return "no output, input or constant" if self.in_postcondition else "no input, constant or earlier step"


def report_taken(what: str, word: ast.Word, other: Declared, bag: DiagnosticBag) -> None:
    also = (Label(other.span, f"{other.describe()} is {'declared' if other.library is None else 'used'} here"),)
    help_ = "give one of the two another name"
    bag.error(Code.NAME_TAKEN, word.span, also=also, what=what, name=word.text, other=other.describe(), help=help_)
