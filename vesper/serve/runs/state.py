"""The state of a run that `/runs` shows to its callers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vesper.api.input_conversion import Plain
from vesper.api.json_calls import declared_text, object_text, outcome_json
from vesper.engines.outcome import DeclaredError, Denied, EngineFault, Failed, Outcome, Returned
from vesper.host.keyed_runs import outcome_with_reason
from vesper.host.masking import SENSITIVE, Masks
from vesper.host.prepared import compiled_from
from vesper.host.waiting_runs import find_waiting
from vesper.journal.journal import Recorded, Status, Summary
from vesper.journal.moments import moment_json
from vesper.queues.retrying import last_attempt
from vesper.values.json_value import json_string

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.host.host import Host
    from vesper.language.ir import nodes as ir


@dataclass(frozen=True, slots=True)
class RunState:
    """A run at one moment; `version` changes with its status or its wait."""

    body: bytes
    version: str
    is_ended: bool

    @property
    def event(self) -> bytes:
        """Return the run in the form of an event of a stream."""
        return b"event: status\nid: %s\ndata: %s\n\n" % (self.version.encode(), self.body)


def read_state(host: Host, recorded: Recorded, reveals: bool) -> RunState:
    """Return the run with the outcome of its last attempt; `reveals` shows sensitive values."""
    execution = recorded.summary.execution
    attempt, is_over = last_attempt(host, execution)
    last = recorded if is_over and attempt == execution else host.journal.read(attempt)
    is_ended = is_over and last.summary.status is Status.ENDED
    # A worker decides on another attempt in a moment, and the run goes on meanwhile.
    status = last.summary.status if is_over else Status.RUNNING
    waits = waits_for(host, last.summary)
    shown = {**summary_members(last.summary), "execution": execution, "status": status.value}
    shown["started"] = moment_json(recorded.summary.started_us)
    members = {name: json.dumps(each) for name, each in shown.items()}
    members["next_attempt"] = json.dumps(None if attempt == execution else attempt)
    members["waits_for"] = json.dumps(waits)
    members["outcome"] = _outcome_text(host, last, reveals) if is_ended else "null"
    place = "" if waits is None else hashlib.sha256(waits["step"].encode()).hexdigest()[:12]
    version = f"{status}-{place}" if attempt == execution else f"{status}-{place}-{attempt}"
    return RunState(object_text(members.items()).encode(), version, is_ended)


def summary_members(summary: Summary) -> dict[str, str]:
    return {
        "execution": summary.execution,
        "node": summary.node_id,
        "status": summary.status.value,
        "started": moment_json(summary.started_us),
        "updated": moment_json(summary.updated_us),
    }


def waits_for(host: Host, summary: Summary) -> dict[str, Any] | None:
    """Return the awaited time, signal or interrupt of a waiting run; None for other runs."""
    found = find_waiting(host.journal, summary.execution) if summary.status is Status.WAITING else None
    if found is None:
        return None
    members = {"kind": found.kind, "name": found.name, "step": found.path, "message": found.message}
    return {**members, "until": None if found.due_us is None else moment_json(found.due_us)}


def _outcome_text(host: Host, recorded: Recorded, reveals: bool) -> str:
    if recorded.entries[-1].is_erased:
        return object_text([("kind", json_string(recorded.summary.outcome or "")), ("is_erased", "true")])
    compiled = compiled_from(host.journal.definition(recorded.summary.semantic_hash))
    outcome = outcome_with_reason(recorded)
    shown = outcome if reveals else _mask_outcome(compiled, outcome)
    if shown == outcome or isinstance(shown, Failed | EngineFault):
        return outcome_json(compiled, shown, Plain({}))  # equal outcomes may have other reasons
    return _write_masked(compiled, outcome, shown)


def _mask_outcome(compiled: Compiled, outcome: Outcome) -> Outcome:
    """Return an outcome without sensitive values, and without reasons, which only its caller may see."""
    return Denied(outcome.capability) if isinstance(outcome, Denied) else Masks(compiled).outcome(outcome)


def _write_masked(compiled: Compiled, outcome: Outcome, shown: Outcome) -> str:
    """Return an outcome in which each masked field is `<sensitive>` as a whole. Most types have no place for a mask."""
    entries = [("kind", json_string(outcome.kind))]
    if isinstance(outcome, Returned | DeclaredError) and isinstance(shown, Returned | DeclaredError):
        declared = compiled.node.outputs if isinstance(outcome, Returned) else compiled.node.errors
        entries.append(("value", _write_masked_fields(declared, outcome.value, shown.value)))
    return object_text(entries)


def _write_masked_fields(declared: tuple[ir.Output, ...], values: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    open_ = {name: each for name, each in values.items() if shown[name] == each}
    plain: dict[str, Any] = json.loads(declared_text(declared, open_)) if open_ else {}
    hidden = {
        each.outside or each.name: SENSITIVE for each in declared if each.name in values and each.name not in open_
    }
    return json.dumps({**plain, **hidden}, sort_keys=True)
