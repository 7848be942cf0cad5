"""One step of a pipeline: a node runs on the envelope, and its outcome becomes the result of the step.

The run has the step as key, so that its effects are performed once, in whichever process and however often the kernel
gives the step out. A run that asks a person becomes a question of the kernel; the answer resolves the run's interrupt.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from vesper.host.budgets import BudgetScope
from vesper.host.in_doubt import InDoubt
from vesper.host.run_context import MAX_KEY_CHARACTERS, KeyReused, KeyRunning, RunReport, run_context
from vesper.host.waiting import RunWaits
from vesper.host.waiting_runs import NotWaiting, WaitingRun, WrongValue, answer, cancel, find_waiting
from vesper.kernel import v1
from vesper.kernel.pipelines.file import INPUTS_SETTING
from vesper.observe.context import TRACEPARENT, parse_traceparent
from vesper.policies.budget import Budget
from vesper.trace.export.call_records import call_records
from vesper.trace.journalled import trace_of_execution
from vesper.values.json_value import Json, exact_text, parse_json
from vesper.values.strict_json import forms_of_json

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.host.host import Host

_VIA = "kernel"
_BUDGET_KEPT_US = 90 * 86_400_000_000
_POLL_SECONDS = 0.1
"""Interval at which a step looks after a run that waits for something other than a person."""
_RETURNED = b'{"kind":"returned","value":'
_KINDS = {
    "clarification": v1.InterruptKind.INTERRUPT_KIND_CLARIFICATION,
    "confirmation": v1.InterruptKind.INTERRUPT_KIND_CONFIRMATION,
    "agent_review": v1.InterruptKind.INTERRUPT_KIND_AGENT_REVIEW,
    "checkpoint": v1.InterruptKind.INTERRUPT_KIND_CHECKPOINT,
    "resource_exhausted": v1.InterruptKind.INTERRUPT_KIND_RESOURCE_EXHAUSTED,
    "timeout": v1.InterruptKind.INTERRUPT_KIND_TIMEOUT,
    "system_error": v1.InterruptKind.INTERRUPT_KIND_SYSTEM_ERROR,
}


class Abandoned(Exception):
    """The worker ends; the step goes back to the kernel without a result."""


def perform_step(host: Host, node: Node, step: v1.Instruction, stopping: threading.Event) -> v1.AgentExecutionResult:
    """Run the node of a step to its end or its next question. Raises `Abandoned` when the worker ends meanwhile."""
    envelope = step.envelope
    try:
        inputs = inputs_of(node, envelope, step.agent_config)
    except ValueError as error:
        return _failed(step, "bad_input", str(error))
    problem = _apply_answer(host, step.interrupt) if step.HasField("interrupt") else ""
    while True:
        try:
            with context_of(step) as report, budget_of(step):
                outcome = node.run_json(inputs)
            return _result(host, step, outcome, report.execution)
        except RunWaits as waits:
            question = _question(host, step, waits, problem) if waits.kind == "interrupt" else None
            if question is not None:
                return question
        except KeyRunning:
            pass  # the same step in another thread or process; its outcome is waited for
        except InDoubt as doubt:
            return _failed(step, "in_doubt", str(doubt))
        except KeyReused as reused:
            return _failed(step, "key_reused", str(reused))
        if stopping.wait(_POLL_SECONDS):
            raise Abandoned


def context_of(step: v1.Instruction) -> AbstractContextManager[RunReport]:
    """Return the context of the run, which continues the trace of the step."""
    parent = parse_traceparent(step.envelope.metadata.get(TRACEPARENT))
    return run_context(
        key=key_of(step),
        via=_VIA,
        actor=step.envelope.user_id or None,
        traceparent=None if parent is None else str(parent),
    )


def key_of(step: v1.Instruction) -> str:
    """Return the key of the run: the step, told from that of a kernel with another log by the time of its envelope."""
    key = f"kernel:{step.envelope.created_us}:{step.step_id}"
    return key if len(key) <= MAX_KEY_CHARACTERS else f"kernel:{hashlib.sha256(key.encode()).hexdigest()}"


def budget_of(step: v1.Instruction) -> AbstractContextManager[object]:
    """Return the budget of the process: requests to models reserve what is left of its quota before they are sent.

    All steps of a process share it, in all workers with the same store of budgets.
    """
    bounds = step.envelope.bounds
    has_tokens = bounds.HasField("max_tokens_in") and bounds.HasField("max_tokens_out")
    tokens = bounds.max_tokens_in + bounds.max_tokens_out if has_tokens else None
    calls = bounds.max_llm_calls if bounds.HasField("max_llm_calls") else None
    if tokens is None and calls is None:
        return nullcontext()
    key = f"kernel/{step.envelope.created_us}/{step.pid}"
    return BudgetScope(Budget("named", "process", tokens=tokens, calls=calls), key, _BUDGET_KEPT_US)


def inputs_of(node: Node, envelope: v1.Envelope, config: v1.AgentConfig) -> bytes:
    """Return the inputs of a node as JSON: those of the request, and what the stage takes from elsewhere.

    Raises `ValueError` for a source that does not fit.
    """
    sources: Mapping[str, str] = json.loads(config.settings.get(INPUTS_SETTING, "{}"))
    found = {name: text for name, text in envelope.inputs_json.items() if name in node.inputs and name not in sources}
    for name, source in sources.items():
        value = _value_at(envelope, source)
        if value is not None:
            found[name] = value
    members = (f"{json.dumps(name)}:{text}" for name, text in sorted(found.items()))
    return f"{{{','.join(members)}}}".encode()


def _value_at(envelope: v1.Envelope, source: str) -> str | None:
    """Return the JSON text at `inputs.NAME`, `outputs.STAGE.FIELD` or `metadata.NAME`; None where nothing is."""
    place, name, *path = source.split(".")
    if place == "metadata":
        return json.dumps(envelope.metadata[name]) if name in envelope.metadata and not path else None
    members = envelope.inputs_json if place == "inputs" else envelope.outputs_json
    if name not in members:
        return None
    content: Any = parse_json(members[name]).content
    for each in path:
        if not isinstance(content, dict) or each not in content:
            return None
        content = content[each]
    return exact_text(Json(content))


# -- results --------------------------------------------------------------------------------------


def outcome_of(outcome: bytes) -> tuple[str, tuple[str, str] | None]:
    """Return the output of an outcome as JSON, or else code and message of its failure."""
    if outcome.startswith(_RETURNED):
        return outcome[len(_RETURNED) : -1].decode(), None
    read = json.loads(outcome)
    declared = read.get("value")
    found = {**read, **declared} if isinstance(declared, dict) else read
    return "", (str(read.get("code") or read["kind"]), str(found.get("message") or read["kind"]))


def _result(host: Host, step: v1.Instruction, outcome: bytes, execution: str | None) -> v1.AgentExecutionResult:
    metrics = _metrics(host, execution)
    output, problem = outcome_of(outcome)
    if problem is not None:
        return _failed(step, *problem, metrics)
    return v1.AgentExecutionResult(step_id=step.step_id, output_json=output, metrics=metrics)


def _failed(
    step: v1.Instruction, code: str, message: str, metrics: v1.AgentExecutionMetrics | None = None
) -> v1.AgentExecutionResult:
    failure = v1.AgentFailure(code=code, message=message)
    return v1.AgentExecutionResult(step_id=step.step_id, failure=failure, metrics=metrics)


def _metrics(host: Host, execution: str | None) -> v1.AgentExecutionMetrics | None:
    """Return what a run has used of models; None for a node without effects."""
    if execution is None:
        return None
    records = call_records(trace_of_execution(host.journal, execution))
    calls = [each for each in records if each.kind == "model" and each.status != "budget_exceeded"]
    return v1.AgentExecutionMetrics(
        llm_calls=len(calls),
        tokens_in=sum(each.input_tokens for each in calls),
        tokens_out=sum(each.output_tokens for each in calls),
    )


# -- questions ------------------------------------------------------------------------------------


def _question(host: Host, step: v1.Instruction, waits: RunWaits, problem: str) -> v1.AgentExecutionResult | None:
    """Return the question of a run that waits for a person; None where it no longer does.

    `problem` tells why an answer was not taken.
    """
    waiting = find_waiting(host.journal, waits.execution)
    if waiting is None or waiting.path != waits.path:
        return None
    data = {"node": waits.node_id, "answer_type": str(waiting.answer_type), **_place(waiting)}
    if problem:
        data["problem"] = problem
    question = v1.AgentQuestion(
        kind=_KINDS[waits.name], message=waiting.message or "", data_json=json.dumps(data), run_id=waits.execution
    )
    if waits.due_us is not None:
        question.ttl_us = max(1, waits.due_us - host.journal.now_us())
    return v1.AgentExecutionResult(step_id=step.step_id, question=question)


def _place(waiting: WaitingRun) -> dict[str, object]:
    """Return what tells one wait of a run from the others."""
    return {"step": waiting.path, "asked_us": waiting.since_us}


def is_asked_by(interrupt: v1.FlowInterrupt, waiting: WaitingRun) -> bool:
    """Return whether an interrupt of the kernel stands for this wait of its run."""
    data = json.loads(interrupt.data_json or "null")
    return isinstance(data, dict) and _place(waiting).items() <= data.items()


def _apply_answer(host: Host, interrupt: v1.FlowInterrupt) -> str:
    """Bring the end of a question to the run that asked it; return why its answer is not taken, if so.

    A run that no longer waits has its answer already: this step was given out before.
    """
    journal, run = host.journal, interrupt.run_id
    by = interrupt.response.by or None
    with suppress(NotWaiting):
        waiting = find_waiting(journal, run)
        if waiting is None or not is_asked_by(interrupt, waiting):
            return ""
        match interrupt.status:
            case v1.InterruptStatus.INTERRUPT_STATUS_RESOLVED:
                try:
                    answer(journal, run, forms_of_json(interrupt.response.value_json or "null"), by)
                except WrongValue as problem:
                    return str(problem)
            case v1.InterruptStatus.INTERRUPT_STATUS_CANCELLED:
                cancel(journal, run, "the interrupt was cancelled in the kernel", by)
            case v1.InterruptStatus.INTERRUPT_STATUS_EXPIRED:
                journal.wake(run, waiting.path, None, "expired", "no answer came in time", None)
    host.keeper.notice()
    return ""
