"""The record of one execution: inputs, requests with their completions, outcome.

A transcript contains everything that another engine needs to follow the same execution, now or after a change of the
node: the follower is fed the completions, and performs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from vesper.engines.engine import Completion, Request
from vesper.engines.outcome import Failed, Outcome
from vesper.host.outcomes import outcome_record, recorded_outcome
from vesper.journal.typed_json import decode, encode_text
from vesper.values.problem import Problem, ProblemKind

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its completion."""

    request: Request
    value: object = None
    failure: str | None = None

    def completion(self) -> Completion:
        return Completion(self.request.id, self.value, self.failure)


@dataclass(frozen=True, slots=True)
class Transcript:
    inputs: Mapping[str, object]
    now: datetime | None
    exchanges: tuple[Exchange, ...]
    outcome: Outcome

    def to_text(self) -> str:
        return encode_text(
            {
                "format": _FORMAT,
                "inputs": dict(self.inputs),
                "now": self.now,
                "exchanges": [_write_exchange(each) for each in self.exchanges],
                "outcome": _write_outcome(self.outcome),
            }
        )

    @staticmethod
    def from_text(text: str | bytes) -> Transcript:
        found: dict[str, Any] = decode(text.encode() if isinstance(text, str) else text)
        if found.get("format") != _FORMAT:
            raise ValueError(f"a transcript of the format {found.get('format')!r}, and this Vesper reads {_FORMAT}")
        exchanges = tuple(_read_exchange(number, each) for number, each in enumerate(found["exchanges"]))
        return Transcript(found["inputs"], found["now"], exchanges, _read_outcome(found["outcome"]))


def _write_outcome(outcome: Outcome) -> dict[str, object]:
    """Return the journal's record, plus the problems of inputs, by which engines are compared too."""
    record = outcome_record(outcome)
    if isinstance(outcome, Failed) and outcome.problems:
        record["problems"] = [[each.path, each.kind.value] for each in outcome.problems]
    return record


def _read_outcome(found: Mapping[str, Any]) -> Outcome:
    outcome = recorded_outcome(found)
    if isinstance(outcome, Failed) and "problems" in found:
        problems = tuple(Problem(path, ProblemKind(kind)) for path, kind in found["problems"])
        return replace(outcome, problems=problems)
    return outcome


def _write_exchange(exchange: Exchange) -> dict[str, object]:
    request = exchange.request
    return {
        "path": request.path,
        "effect": request.effect,
        "class": request.effect_class,
        "fixed": dict(request.fixed),
        "arguments": dict(request.arguments),
        "key": request.key,
        "value": exchange.value,
        "failure": exchange.failure,
    }


def _read_exchange(number: int, found: Mapping[str, Any]) -> Exchange:
    request = Request(
        number, found["path"], found["effect"], found["class"], found["fixed"], found["arguments"], found["key"]
    )
    return Exchange(request, found["value"], found["failure"])
