"""A diagnostic as data: what, where, why, what to do. Renderers turn it into text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.fix import Fix
from vesper.language.diagnostics.source import SourceFile, Span


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
    fix: Fix | None = None
    """Looked for by `vesper.language.syntax.repairs` when somebody asks, from the code, the place and the text; so a
    diagnostic
    that comes out of a cache has one too."""


MAX_FOUND = 50
MAX_HELP = 400
"""So many errors, and so many warnings, are reported of one file: more are noise, and a hostile file has no end."""


class CheckingStopped(Exception):
    """Nothing more is worth saying about this file; the reason is in the bag."""


class DiagnosticBag:
    """Collects what the phases find in one file. A phase reports all it sees; the next one runs only without errors."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.error_count = 0
        self._found: list[Diagnostic] = []

    def error(
        self, code: Code, span: Span, label: str = "", *, also: tuple[Label, ...] = (), help: str | None = None,
        **holes: object,
    ) -> None:  # fmt: skip
        self._add(Severity.ERROR, code, span, label, also, help, holes)
        self.error_count += 1
        if len(self._found) >= MAX_FOUND and self.error_count >= MAX_FOUND:
            raise CheckingStopped

    def report(self, code: Code, span: Span, holes: Mapping[str, object], help: str | None = None) -> None:
        """An error that somebody else put into words."""
        self.error(code, span, help=help, **holes)  # type: ignore[arg-type]  # holes are no labels

    def warning(
        self, code: Code, span: Span, label: str = "", *, also: tuple[Label, ...] = (), help: str | None = None,
        **holes: object,
    ) -> None:  # fmt: skip
        if len(self._found) < MAX_FOUND:
            self._add(Severity.WARNING, code, span, label, also, help, holes)

    def _add(
        self, severity: Severity, code: Code, span: Span, label: str, also: tuple[Label, ...], help: str | None,
        holes: dict[str, object],
    ) -> None:  # fmt: skip
        # Plain replacement, not str.format: what fills a hole is the author's text and may hold braces.
        headline = code.headline
        for name, value in holes.items():
            headline = headline.replace("{" + name + "}", one_line(str(value)))
        primary = Label(span, one_line(label))
        secondary = tuple(Label(each.span, one_line(each.text)) for each in also)
        self._found.append(
            Diagnostic(code, severity, headline, primary, secondary, None if help is None else one_line(help, MAX_HELP))
        )

    @property
    def has_errors(self) -> bool:
        return self.error_count > 0

    def improve(self, change: Callable[[SourceFile, Diagnostic], Diagnostic]) -> None:
        """Replace each diagnostic by one that says more about the same."""
        self._found = [change(self.source, diagnostic) for diagnostic in self._found]

    def sorted(self) -> list[Diagnostic]:
        """In the order of the file; of two at one place, the one that was found first."""
        return sorted(self._found, key=lambda diagnostic: diagnostic.primary.span.start)


def one_line(text: str, longest: int = 80) -> str:
    """The author's words as a terminal may show them: what it would act on made visible, the end of much cut."""
    shown = "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}" for character in text[: longest + 1]
    )
    return shown if len(shown) <= longest else shown[: longest - 3] + "..."
