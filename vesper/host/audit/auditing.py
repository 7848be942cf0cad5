"""Lines of the audit log about a run, by level.

`basic` records that the run happened and how it ended; `detailed` also its values and its changes outside. The log is
not encrypted: it has `<sensitive>` in place of a sensitive input and of every value computed from one.
`vesper.host.masking` reads from the node's taint flags which values those are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vesper.engines.engine import Request
from vesper.engines.outcome import (
    ContractBroken,
    DeclaredError,
    Denied,
    EngineFault,
    Failed,
    LimitHit,
    Outcome,
    Returned,
)
from vesper.host.audit.members import audit_members
from vesper.host.masking import Masks, Whole
from vesper.host.run_context import RunContext
from vesper.journal.entry import AuditEvent
from vesper.journal.journal import JournalError, Run
from vesper.storage.sources import SYSTEM_SOURCES, Sources
from vesper.values.node_id import split_node_id

_ALWAYS = ("step", "result", "outcome", "said_by")
"""What a line has however large the rest is."""


class Auditing:
    """Writes the lines of one run, with its commits."""

    def __init__(
        self,
        compiled: Whole,
        run: Run,
        masks: Callable[[], Masks],
        sources: Sources = SYSTEM_SOURCES,
        context: RunContext | None = None,
    ) -> None:
        self.level = compiled.node.grants.audit
        self._masks = masks
        self._node = compiled.node
        self._run = run
        self._sources = sources
        self._caller = {} if context is None else context.to_record()
        self._waiting: list[tuple[int, Request, dict[str, object]]] = []

    def effect(self, request: Request, at_us: int, code: str | None, said_by: str | None) -> None:
        """Record a request that changed or tried to change something: its failure, and the person who resolved it."""
        fields: dict[str, object] = {"result": "success" if code is None else code}
        if said_by is not None:
            fields["said_by"] = said_by
        self._waiting.append((at_us, request, fields))

    def end(self, inputs: Mapping[str, object], outcome: Outcome) -> None:
        """Write all lines of the run; the commit that ends the run includes them.

        Their times are those of the events, independent of the start time that the caller gave the execution.
        """
        if self.level == "none":
            return
        masks = self._masks()
        shown = masks.outcome(outcome)
        parts = split_node_id(self._node.node_id)
        fields: dict[str, object] = {"result": result_of(shown), "outcome": outcome.kind}
        if self._node.grants.declassified:
            fields["declassified"] = dict(self._node.grants.declassified)
        if self.level == "detailed":
            fields["inputs"] = masks.inputs(inputs)
            if isinstance(shown, Returned | DeclaredError):
                fields["outputs"] = dict(shown.value)
        action = self._node.node_id if parts is None else parts[0]
        if self._node.grants.audit_fields is not None:
            members = audit_members(self._node, inputs, outcome)
            action = members.pop("action", action)
            self._caller = {**self._caller, **members}
        for at_us, request, effect in self._waiting:
            self._write_line(at_us, request.effect, {**_request_fields(request, masks), **effect})
        self._write_line(self._sources.now_us(), action, fields)

    def _write_line(self, at_us: int, action: str, fields: Mapping[str, object]) -> None:
        try:
            self._run.audit(self._event(at_us, action, fields))
        except JournalError as error:
            # It is too large. That it happened, and how it ended, is written all the same.
            short = {name: fields[name] for name in _ALWAYS if name in fields}
            self._run.audit(self._event(at_us, action, {**short, "left_out": str(error)}))

    def _event(self, at_us: int, action: str, fields: Mapping[str, object]) -> AuditEvent:
        caller = {name: text for name, text in self._caller.items() if text}
        return AuditEvent(at_us, self._run.execution, self._node.node_id, self.level, action, fields, caller)


def result_of(outcome: Outcome) -> str:
    """Return `success`, or the reason why the outcome is none."""
    match outcome:
        case Returned():
            return "success"
        case DeclaredError(value):
            return str(value["error_code"])
        case Failed(code):
            return str(code)
        case ContractBroken(phase):
            return f"broken {phase}"
        case Denied(capability):
            return f"denied {capability}"
        case LimitHit(limit):
            return f"limit {limit}"
        case EngineFault():
            return "engine fault"


def _request_fields(request: Request, masks: Masks) -> dict[str, object]:
    mask = masks.request(request.path)
    fields: dict[str, object] = {"step": request.path, **request.fixed}
    fields["arguments"] = mask.mask_arguments(request.arguments)
    if request.key is not None:
        fields["key"] = mask.mask_key(request.key)
    return fields
