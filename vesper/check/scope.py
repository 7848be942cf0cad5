"""What a name means where it stands: inputs, constants, steps above, outputs in postconditions."""

from __future__ import annotations

from dataclasses import dataclass, field

from vesper.diagnostics.codes import Code
from vesper.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.diagnostics.source import Span
from vesper.spec.types import Type
from vesper.syntax import ast


@dataclass(slots=True)
class Declared:
    kind: str
    name: str
    type: Type | None
    """None when its declaration is wrong already: then nothing more is said about its uses."""
    span: Span
    used: bool = False

    def describe(self) -> str:
        return f"{'an' if self.kind[0] in 'aeiou' else 'a'} {self.kind}"


@dataclass(slots=True)
class Scope:
    """The names of one node. Inputs, constants and steps share one namespace; outputs have their own."""

    names: dict[str, Declared] = field(default_factory=dict)
    outputs: dict[str, Declared] = field(default_factory=dict)
    in_postcondition: bool = False

    def declare(self, kind: str, word: ast.Word, type_: Type | None, bag: DiagnosticBag) -> None:
        """Add a name, or report who has it."""
        table = self.outputs if kind == "output" else self.names
        other = table.get(word.text)
        if other is None:
            table[word.text] = Declared(kind, word.text, type_, word.span)
            return
        what = "an output" if kind == "output" else f"this {kind}"
        also = (Label(other.span, f"{other.describe()} is declared here"),)
        bag.error(Code.NAME_TAKEN, word.span, also=also, what=what, name=word.text, other=other.describe())

    def find(self, name: str) -> Declared | None:
        """What a bare name means: in postconditions outputs come first, and steps are not seen."""
        if self.in_postcondition:
            found = self.outputs.get(name) or self.names.get(name)
            return None if found is None or found.kind == "step" else found
        return self.names.get(name)

    def member(self, scope: str, name: str) -> Declared | None:
        """What `input.name` or `output.name` means."""
        if scope == "output":
            return self.outputs.get(name) if self.in_postcondition else None
        found = self.names.get(name)
        return found if found is not None and found.kind == "input" else None

    def visible(self) -> list[Declared]:
        """Everything a bare name could mean here."""
        names = {**self.names, **self.outputs} if self.in_postcondition else self.names
        return [found for name in names if (found := self.find(name)) is not None]

    def kinds(self) -> str:
        return "no output, input or constant" if self.in_postcondition else "no input, constant or earlier step"
