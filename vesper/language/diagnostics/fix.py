"""Fixes as data: spans and their replacements. This module decides and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from vesper.language.diagnostics.source import Span


class Safety(Enum):
    """Degree of trust in a fix."""

    SAFE = "safe"
    """An unambiguous fix; `vesper check --fix` applies it."""
    SUGGESTED = "suggested"
    """A probable fix that the author must confirm."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replacement of a span. INVARIANT: no edit adds or removes a line, so line numbers stay valid."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A repair of a text."""

    description: str
    """Imperative description on one line, such as "write `==`"."""
    safety: Safety
    edits: tuple[Edit, ...]


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text after all edits. Equal edits are applied once, and others must not overlap."""
    parts: list[str] = []
    position = 0
    for edit in _sort_edits(edits):
        assert edit.span.start >= position, "the edits overlap"
        parts += [text[position : edit.span.start], edit.replacement]
        position = edit.span.end
    return "".join([*parts, text[position:]])


def can_be_applied_together(edits: Iterable[Edit]) -> bool:
    """Return whether no two different edits touch the same characters."""
    position = -1
    for edit in _sort_edits(edits):
        if edit.span.start < position or (edit.span.start == edit.span.end == position):
            return False
        position = edit.span.end
    return True


def _sort_edits(edits: Iterable[Edit]) -> list[Edit]:
    return sorted(set(edits), key=lambda edit: (edit.span.start, edit.span.end, edit.replacement))
