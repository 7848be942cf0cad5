"""Diagnostics as data: problem, location, reason, help. Renderers turn them into text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.fix import Fix
from vesper.language.diagnostics.source import SourceFile, Span


class Severity(Enum):
    """Severity of a diagnostic."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    """A fact about a correct node; only `vesper check` shows it."""


@dataclass(frozen=True, slots=True)
class Label:
    """A span with a short text about it."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning about a node."""

    code: Code
    severity: Severity
    headline: str
    primary: Label
    secondary: tuple[Label, ...]
    help: str | None
    fix: Fix | None = None
    """Fix, computed on request by `vesper.language.syntax.repairs`.

    It depends on code, span and text only, so diagnostics from a cache have one too.
    """


MAX_DIAGNOSTICS = 50
"""Maximum number of diagnostics per file; the check stops there."""
MAX_HELP = 400
"""Maximum length of a help line, in characters."""


class CheckingStopped(Exception):
    """The check of this file stops; the bag holds the reason."""


class DiagnosticBag:
    """Collects the diagnostics of one file.

    A phase reports everything it finds; the next one runs only without errors.
    """

    observe_checker: Callable[[Any], None] | None = None
    """Receives the expression checker of the file, for editors that ask about types and names at a place."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.error_count = 0
        self.reads_others = False
        """Whether the diagnostics depend on other files too: called nodes, libraries, rows of tables."""
        self._found: list[Diagnostic] = []

    def error(
        self, code: Code, span: Span, label: str = "", *, also: tuple[Label, ...] = (), help: str | None = None,
        **holes: object,
    ) -> None:  # fmt: skip
        """Add an error; stop the check at the maximum number."""
        self._add(Severity.ERROR, code, span, label, also, help, holes)
        self.error_count += 1
        if len(self._found) >= MAX_DIAGNOSTICS and self.error_count >= MAX_DIAGNOSTICS:
            raise CheckingStopped

    def report(self, code: Code, span: Span, holes: Mapping[str, object], help: str | None = None) -> None:
        """Add an error whose holes are given as a mapping."""
        self.error(code, span, help=help, **holes)  # type: ignore[arg-type]  # holes are no labels

    def warning(
        self, code: Code, span: Span, label: str = "", *, also: tuple[Label, ...] = (), help: str | None = None,
        **holes: object,
    ) -> None:  # fmt: skip
        """Add a warning, unless the maximum number is reached."""
        if len(self._found) < MAX_DIAGNOSTICS:
            self._add(Severity.WARNING, code, span, label, also, help, holes)

    def note(self, code: Code, span: Span, label: str = "", *, help: str | None = None, **holes: object) -> None:
        """Add a note, unless the maximum number is reached."""
        if len(self._found) < MAX_DIAGNOSTICS:
            self._add(Severity.NOTE, code, span, label, (), help, holes)

    def _add(
        self, severity: Severity, code: Code, span: Span, label: str, also: tuple[Label, ...], help: str | None,
        holes: dict[str, object],
    ) -> None:  # fmt: skip
        # Plain replacement and not str.format, because holes are filled with source text that may contain braces.
        headline = code.headline
        for name, value in holes.items():
            headline = headline.replace("{" + name + "}", one_line(str(value)))
        primary = Label(span, one_line(label))
        secondary = tuple(Label(each.span, one_line(each.text)) for each in also)
        self._found.append(
            Diagnostic(code, severity, headline, primary, secondary, None if help is None else one_line(help, MAX_HELP))
        )

    def errors_since(self, count: int) -> list[Diagnostic]:
        """Return the errors after the first `count`. Only errors may have been added since then."""
        return self._found[len(self._found) - (self.error_count - count) :]

    def retract(self, count: int) -> None:
        """Drop the errors after the first `count`; a better explanation replaces them."""
        del self._found[len(self._found) - (self.error_count - count) :]
        self.error_count = count

    def retract_inside(self, spans: Sequence[Span]) -> None:
        """Drop the errors inside spans. These texts are checked again where their author wrote them."""
        kept = [each for each in self._found if not any(_is_inside(each.primary.span, span) for span in spans)]
        self.error_count -= sum(each.severity is Severity.ERROR for each in self._found) - sum(
            each.severity is Severity.ERROR for each in kept
        )
        self._found = kept

    def adopt(self, other: DiagnosticBag, accept: Callable[[Diagnostic], bool] = lambda _: True) -> None:
        """Add the accepted diagnostics of another bag for the same source."""
        for each in other._found:
            if accept(each) and len(self._found) < MAX_DIAGNOSTICS:
                self._found.append(each)
                self.error_count += each.severity is Severity.ERROR

    @property
    def has_errors(self) -> bool:
        return self.error_count > 0

    def improve(self, change: Callable[[SourceFile, Diagnostic], Diagnostic]) -> None:
        """Replace each diagnostic by a more detailed one. Equal ones become one."""
        self._found = list(dict.fromkeys(change(self.source, diagnostic) for diagnostic in self._found))

    def sorted(self, notes: bool = False) -> list[Diagnostic]:
        """Return the diagnostics in file order, notes on request. At one location they are in order of discovery."""
        found = [each for each in self._found if notes or each.severity is not Severity.NOTE]
        return sorted(found, key=lambda diagnostic: diagnostic.primary.span.start)


def one_line(text: str, longest: int = 80) -> str:
    """Return source text for a terminal: control characters escaped, and long text cut."""
    shown = "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}" for character in text[: longest + 1]
    )
    return shown if len(shown) <= longest else shown[: longest - 3] + "..."


def _is_inside(span: Span, other: Span) -> bool:
    return other.start <= span.start and span.end <= other.end
