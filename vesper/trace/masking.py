"""Traces as they are shown without `--reveal`: sensitive values masked by the node's taint flags."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from vesper.engines.outcome import ContractBroken
from vesper.host.masking import SENSITIVE, Masks
from vesper.trace.difference import Difference, differences
from vesper.trace.model import ContractResult, Exchange, Marked, MarkKind, Trace, Transition
from vesper.trace.programs import compiled_of


def masked_trace(trace: Trace) -> Trace:
    """Return the trace with sensitive values masked. Conditions stay: they are the path."""
    if not trace.is_sensitive:
        return trace
    masks = Masks(compiled_of(trace.definition))
    origin = trace.origin
    return replace(
        trace,
        inputs=masks.inputs(trace.inputs),
        exchanges=tuple(_exchange(each, masks) for each in trace.exchanges),
        marks=tuple(_mark(each, masks) for each in trace.marks),
        contracts=tuple(_contract(each, masks) for each in trace.contracts),
        transitions=tuple(_transition(each, masks) for each in trace.transitions),
        outcome=None if trace.outcome is None else masks.outcome(trace.outcome),
        # A change is described by its values.
        origin=None if origin is None else replace(origin, changes=(SENSITIVE,) * len(origin.changes)),
    )


def masked_differences(left: Trace, right: Trace) -> list[Difference]:
    """Return all differences, with masked texts. A difference that masks hide keeps its place only."""
    found = differences(left, right)
    if not (left.is_sensitive or right.is_sensitive):
        return found
    shown = differences(masked_trace(left), masked_trace(right))
    known = {each.where: each for each in shown}
    counts = Counter(each.where for each in (*found, *shown))
    return [
        known[each.where]
        if each.where in known and counts[each.where] == 2  # in a loop, pairs cannot be told apart
        else replace(each, left=SENSITIVE, right=SENSITIVE)
        for each in found
    ]


def _exchange(exchange: Exchange, masks: Masks) -> Exchange:
    mask = masks.request(exchange.path)
    return replace(
        exchange,
        arguments=mask.mask_arguments(exchange.arguments),
        key=mask.mask_key(exchange.key),
        value=None if exchange.failure is not None else mask.mask_answer(exchange.value),
        message=mask.mask_message(exchange.message),
    )


def _mark(mark: Marked, masks: Masks) -> Marked:
    return replace(mark, value=masks.mark(mark.index, mark.value)) if mark.kind is MarkKind.VALUE else mark


def _contract(result: ContractResult, masks: Masks) -> ContractResult:
    if not result.values:
        return result
    broken = ContractBroken(result.phase, result.index, result.values)  # type: ignore[arg-type]  # values of an engine
    return replace(result, values=masks.broken(broken))


def _transition(transition: Transition, masks: Masks) -> Transition:
    mask = masks.request(transition.path)
    return replace(transition, entity=mask.mask_arguments({"entity": transition.entity})["entity"])
