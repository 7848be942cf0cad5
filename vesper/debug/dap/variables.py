"""Scopes and variables of a stop, which an editor requests by number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vesper.debug.dap.messages import THREADS, Message, Refused
from vesper.debug.session import Session
from vesper.debug.stops import Stop
from vesper.debug.view import clause_text, divergence_lines, outcome_rows, request_rows, rows
from vesper.values.model import show


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that is not a value and is shown without quotes."""

    text: str


class Variables:
    """Variables sent since the last step."""

    def __init__(self) -> None:
        self._shown: dict[int, tuple[str, list[tuple[str, object]]]] = {}
        """Scope and entries, by reference."""

    def clear(self) -> None:
        self._shown.clear()

    def reference(self, scope: str, entries: list[tuple[str, object]]) -> int:
        number = len(self._shown) + 1
        self._shown[number] = scope, entries
        return number

    def scope_of(self, reference: int) -> str:
        """Return the name of a scope; an empty text for an unknown reference."""
        return self._shown.get(reference, ("", []))[0]

    def list_variables(self, reference: int) -> list[Message]:
        if reference not in self._shown:
            raise Refused("this reference is from before the last step: request the scopes again")
        scope, entries = self._shown[reference]
        return [self.variable(scope, name, value) for name, value in entries]

    def variable(self, scope: str, name: str, value: object) -> Message:
        if isinstance(value, _Text):
            return {"name": name, "value": value.text, "variablesReference": 0}
        parts: list[tuple[str, object]] = []
        if isinstance(value, dict):
            parts = [(str(key) if isinstance(key, str) else show(key), each) for key, each in value.items()]
        elif isinstance(value, list | tuple):
            parts = [(f"[{number}]", each) for number, each in enumerate(value)]
        reference = self.reference(f"{scope}.{name}", parts) if parts else 0
        found: Message = {"name": name, "value": show(value), "variablesReference": reference}
        if scope in ("Inputs", "Steps"):
            found["evaluateName"] = f"input.{name}" if scope == "Inputs" else name
        return found


def scopes_of(session: Session, stop: Stop) -> list[tuple[str, str | None, list[tuple[str, object]]]]:
    names: dict[str, list[tuple[str, object]]] = {}
    for (kind, _), name in stop.names.items():
        names.setdefault({"local": "step"}.get(kind, kind), []).append((name.name, name.value))
    asked: list[tuple[str, object]] = []
    if stop.request is not None:
        asked = [(key or "request", _Text(text)) for key, text in request_rows(stop.request)]
    elif stop.given is not None:
        asked = list(stop.given.items())
    contracts = [(f"{each.phase} {each.index + 1}", _Text(clause_text(each))) for each in stop.clauses]
    result: list[tuple[str, object]] = []
    if session.position.is_after and stop.gives is not None:
        result.append((stop.gives.name, stop.gives.value))
    if stop.outcome is not None:
        result += [(key or "outcome", _Text(text)) for key, text in outcome_rows(stop.outcome).items()]
    return [
        ("Inputs", "arguments", names.get("input", [])),
        ("Steps", "locals", names.get("step", [])),
        ("Outputs", None, names.get("output", [])),
        ("About to call", None, asked),
        ("Contract", None, list(contracts)),
        ("Gives", "returnValue", result),
        ("Constants", None, names.get("constant", [])),
        ("differs", None, list(_differences(session))),
    ]


def _differences(session: Session) -> Iterator[tuple[str, object]]:
    """Yield the differences of the engines at this position, then the first divergence."""
    for row in rows(session):
        if row.differs:
            texts = zip((THREADS.get(side.name, side.name) for side in session.sides), row.texts, strict=True)
            key = row.key or row.section
            yield key, _Text("   ≠   ".join(f"{name}: {'-' if text is None else text}" for name, text in texts))
    lines = divergence_lines(session)
    if lines:
        yield "first", _Text("; ".join(line.strip() for line in lines))


def source_of(session: Session, reference: int) -> Message:
    path = Path(session.compiled.source.path)
    if path.is_file():
        return {"name": path.name, "path": str(path.resolve())}
    return {"name": path.name, "sourceReference": reference}
