"""A repair of a text as data: which stretches are replaced by what. Nothing here decides or writes anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from vesper.language.diagnostics.source import Span


class Safety(Enum):
    """How far a fix can be trusted."""

    SAFE = "safe"
    """It can only mean what the author meant; `vesper check --fix` applies it."""
    SUGGESTED = "suggested"
    """Likely, but a person decides."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces a stretch of the text. INVARIANT: no edit adds or removes a line, so line numbers outlive it."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class Fix:
    description: str
    """What it does, on one line, as an order: "write `==`"."""
    safety: Safety
    edits: tuple[Edit, ...]


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after all the edits; one that is given twice counts once. Edits must not overlap."""
    parts: list[str] = []
    position = 0
    for edit in _in_order(edits):
        assert edit.span.start >= position, "the edits overlap"
        parts += [text[position : edit.span.start], edit.replacement]
        position = edit.span.end
    return "".join([*parts, text[position:]])


def can_be_applied_together(edits: Iterable[Edit]) -> bool:
    """Whether no two different edits touch the same characters."""
    position = -1
    for edit in _in_order(edits):
        if edit.span.start < position or (edit.span.start == edit.span.end == position):
            return False
        position = edit.span.end
    return True


def _in_order(edits: Iterable[Edit]) -> list[Edit]:
    return sorted(set(edits), key=lambda edit: (edit.span.start, edit.span.end, edit.replacement))
