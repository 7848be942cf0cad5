"""Both sides of a stored divergence for people: values side by side, and the inputs.

`vesper divergences` and the dashboard show the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from vesper.journal.errors import JournalError
from vesper.journal.moments import number
from vesper.migration.compare.divergence import Exemplar
from vesper.migration.compare.divergence_record import transcript_in
from vesper.migration.compare.transcript import Transcript
from vesper.values.model import printable

KIND_WORDS = {
    "outcome": "different outcomes",
    "value": "different intermediate values",
    "request": "different requests",
    "path": "different paths",
    "fault": "an engine fault",
    "noise": "an engine differs from itself",
}


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One value of both answers or requests."""

    name: str
    """Name of the value; empty for the ending."""
    leader: str | None
    """Value as text; None where this side lacks it. `follower` likewise."""
    follower: str | None
    is_marked: bool
    """Whether the sides differ here."""


def answer_rows(leader: str, follower: str) -> list[AnswerRow]:
    """Return both answers or requests by name, the ending first."""
    left, right = _split_answer(leader), _split_answer(follower)
    has_values = (len(left) > 1) == (len(right) > 1)
    return [
        AnswerRow(name, left.get(name), right.get(name), has_values and left.get(name) != right.get(name))
        for name in dict.fromkeys((*left, *right))
    ]


def first_differing(leader: str, follower: str) -> AnswerRow | None:
    """Return the innermost name whose values differ; None where there is none."""
    differing = [each for each in answer_rows(leader, follower) if each.leader != each.follower]
    # A request lists the differing field of an argument last.
    inner = (each for each in reversed(differing) if "." in each.name or "[" in each.name)
    return next(inner, None) or next(iter(differing), None)


def are_requests(exemplar: Exemplar) -> bool:
    """Return whether the sides of an exemplar are requests, not outcomes."""
    return exemplar.leader.startswith("asks for ")


def stored_transcript(exemplar: Exemplar) -> tuple[Transcript | None, str]:
    """Return the stored execution, or None and the reason."""
    try:
        found = transcript_in(exemplar)
    except (ValueError, KeyError, TypeError, JournalError) as error:
        return None, f"its stored inputs and answers are unreadable: {printable(str(error))}"
    if found is not None:
        return found, ""
    if exemplar.left_out:
        return None, f"its inputs and answers were not stored: {number(exemplar.left_out, 'byte')} exceed the limit"
    return None, "its inputs and answers are not stored here: the node is sensitive, and the journal has them"


def _split_answer(words: str) -> dict[str, str]:
    """Split the text of an answer into its ending and its values by name."""
    ending, *lines = words.split("\n")
    found = {"": printable(ending)}
    for line in lines:
        name, equals, value = line.partition(" = ")
        found[printable(name)] = printable(value) if equals else ""
    return found
