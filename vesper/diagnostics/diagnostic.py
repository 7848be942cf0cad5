"""A diagnostic as data: what, where, why, what to do. Renderers turn it into text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from vesper.diagnostics.codes import Code
from vesper.diagnostics.source import SourceFile, Span


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Label:
    """A place and a few words on it."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    code: Code
    severity: Severity
    headline: str
    primary: Label
    secondary: tuple[Label, ...]
    help: str | None


class DiagnosticBag:
    """Collects what the phases find in one file. A phase reports all it sees; the next one runs only without errors."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self._found: list[Diagnostic] = []

    def error(
        self, code: Code, span: Span, label: str = "", *, also: tuple[Label, ...] = (), help: str | None = None,
        **holes: object,
    ) -> None:  # fmt: skip
        self._add(Severity.ERROR, code, span, label, also, help, holes)

    def warning(
        self, code: Code, span: Span, label: str = "", *, also: tuple[Label, ...] = (), help: str | None = None,
        **holes: object,
    ) -> None:  # fmt: skip
        self._add(Severity.WARNING, code, span, label, also, help, holes)

    def _add(
        self, severity: Severity, code: Code, span: Span, label: str, also: tuple[Label, ...], help: str | None,
        holes: dict[str, object],
    ) -> None:  # fmt: skip
        # Plain replacement, not str.format: what fills a hole is the author's text and may hold braces.
        headline = code.headline
        for name, value in holes.items():
            headline = headline.replace("{" + name + "}", _one_line(str(value)))
        self._found.append(Diagnostic(code, severity, headline, Label(span, label), also, help))

    @property
    def has_errors(self) -> bool:
        return any(diagnostic.severity is Severity.ERROR for diagnostic in self._found)

    @property
    def error_count(self) -> int:
        return sum(diagnostic.severity is Severity.ERROR for diagnostic in self._found)

    def sorted(self) -> list[Diagnostic]:
        """In the order of the file; of two at one place, the one that was found first."""
        return sorted(self._found, key=lambda diagnostic: diagnostic.primary.span.start)


def _one_line(text: str) -> str:
    shown = "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in text)
    return shown if len(shown) <= 80 else shown[:77] + "..."
