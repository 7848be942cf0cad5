"""Trace files: they read back unchanged, stay replayable, and changes are detected."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.nodes import ROOT, compiled
from vesper.compiler import Compiled
from vesper.engines.outcome import ContractBroken, Returned
from vesper.engines.registry import PAIR
from vesper.replay.rerun import replay
from vesper.trace.difference import parted
from vesper.trace.model import MarkKind, Trace, TraceError
from vesper.trace.programs import program_of
from vesper.trace.recorder import exchange_of, record_trace
from vesper.trace.timeline import timeline
from vesper.values.model import plain

GOLDENS = Path(__file__).parent / "goldens"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
DECISION = ROOT / "nodes" / "payments" / "payment_decision_v1.vsp"


def case_trace(node: Compiled, number: int, engine: str = "python") -> Trace:
    """Return a case of a node as a trace, with the case's answers."""
    case = node.cases[number]
    waiting = list(case.effects)
    now = case.now if isinstance(case.now, datetime) else NOW
    return record_trace(
        node, program_of(node, engine), engine, f"case-{number}", dict(case.inputs), now,
        lambda request, _: exchange_of(request, plain((each := waiting.pop(0)).returns), each.fails),
    )  # fmt: skip


@pytest.mark.parametrize("path", sorted(GOLDENS.glob("*.json")), ids=lambda path: path.stem)
def test_old_traces_replay_for_ever(path: Path) -> None:
    trace = Trace.from_bytes(path.read_bytes(), path.name)
    for engine in PAIR:
        assert replay(trace, engine).difference is None
    assert trace.to_bytes() == path.read_bytes()


def test_there_are_golden_traces_of_every_format() -> None:
    names = {path.stem for path in GOLDENS.glob("*.json")}
    assert {"format_1_pure", "format_1_effects"} <= names


def test_a_trace_reads_back_as_what_it_was() -> None:
    node = compiled(ROOT / "nodes" / "payments" / "payment_handler_v1.vsp")
    for number in range(len(node.cases)):
        trace = case_trace(node, number)
        again = Trace.from_bytes(trace.to_bytes())
        assert again.to_bytes() == trace.to_bytes()
        assert again.definition == trace.definition
        assert [each.path for each in again.exchanges] == [each.path for each in trace.exchanges]
        assert timeline(again) == timeline(Trace.from_bytes(again.to_bytes()))


def test_both_engines_give_the_same_trace() -> None:
    for name in ("payments/payment_handler_v1", "orders/checkout_v1", "shop/stock_release_v1"):
        node = compiled(ROOT / "nodes" / f"{name}.vsp")
        for number in range(len(node.cases)):
            left, right = (case_trace(node, number, engine) for engine in PAIR)
            right = replace(right, engines=left.engines)
            assert left.without_times().to_bytes() == right.without_times().to_bytes()


def test_marks_have_their_steps_and_clauses_their_results() -> None:
    node = compiled(DECISION)
    inputs = {"amount": 50, "balance": 100, "currency": "USD", "country": "DE", "user_age_days": 400}
    trace = record_trace(node, program_of(node, "interp"), "interp", "t", inputs, NOW)
    assert isinstance(trace.outcome, Returned)
    assert [each.step for each in trace.marks if each.kind is MarkKind.VALUE][-1] == "decision"
    assert all(each.holds for each in trace.contracts)
    broken = record_trace(node, program_of(node, "python"), "python", "t", {**inputs, "amount": 0}, NOW)
    assert isinstance(broken.outcome, ContractBroken)
    assert [(each.phase, each.text, each.holds) for each in broken.contracts][-1] == (
        "precondition",
        "amount > 0",
        False,
    )
    assert broken.contracts[-1].values == {"amount": 0}


def test_state_transitions_are_noted() -> None:
    trace = case_trace(compiled(ROOT / "nodes" / "payments" / "payment_handler_v1.vsp"), 0)
    assert [(each.before, each.to) for each in trace.transitions] == [("pending", "processing"), ("processing", "paid")]
    assert [each.machine for each in trace.transitions] == ["order_lifecycle"] * 2


def test_a_step_that_was_passed_over_is_in_the_timeline() -> None:
    node = compiled(ROOT / "nodes" / "payments" / "payment_handler_v1.vsp")
    steps = timeline(case_trace(node, 1))
    assert [(each.path, each.status) for each in steps] == [
        ("validate_request", "skipped"),
        ("begin", "ok"),
        ("call_stripe_api", "ok"),
        ("record", "ok"),
        ("settle", "ok"),
    ]
    assert steps[1].title == "state_transition: payment_failed -> processing"


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda data: data[: len(data) // 2], "or is truncated"),
        (lambda data: data.replace(b'"duration_us":', b'"duration_uS":'), "its hash does not match"),
        (lambda data: data.replace(b'"format":1', b'"format":9'), "use the newer Vesper that wrote it"),
        (lambda _: b'{"some": "json"}', "is not a trace"),
        (lambda _: b"[1, 2]", "is not a trace"),
        (lambda _: b"\xff\xfe", "is not a trace"),
        (lambda _: b"", "is not a trace"),
    ],
    ids=["cut", "changed", "newer", "other", "list", "bytes", "empty"],
)
def test_a_file_that_is_no_trace_is_refused(spoil: object, message: str) -> None:
    data = case_trace(compiled(ROOT / "nodes" / "payments" / "payment_handler_v1.vsp"), 0).to_bytes()
    assert callable(spoil)
    with pytest.raises(TraceError, match=message):
        Trace.from_bytes(spoil(data), "the file")


def test_a_trace_with_a_right_hash_and_a_wrong_shape_is_refused() -> None:
    import hashlib

    body = json.dumps({"trace_id": "x"}, separators=(",", ":")).encode()
    digest = hashlib.sha256(body).hexdigest()
    data = f'{{"format":1,"kind":"vesper trace","sha256":"{digest}","trace":{body.decode()}}}'.encode()
    with pytest.raises(TraceError, match="is malformed"):
        Trace.from_bytes(data)


def test_a_divergence_is_described() -> None:
    trace = case_trace(compiled(DECISION), 0)
    assert parted(trace, replace(trace, engines=("interp",))) is None
    marks = tuple(replace(each, value=7) if each.step == "risk" else each for each in trace.marks)
    told = parted(trace, replace(trace, engines=("interp",), marks=marks))
    assert told == "interp diverges from python in an intermediate value, at risk"


@pytest.mark.parametrize(
    "before, after, message",
    [
        (b'"risk"', b'"rusk"', "was changed"),
        (b'"name":"risk"', b'"name":"a;b"', "cannot be read"),
        (b'"ir_version":2', b'"ir_version":7', "cannot be read"),
        (b"{", b"[", "cannot be read"),
    ],
    ids=["meaning", "name", "version", "form"],
)
def test_a_changed_node_is_not_run(before: bytes, after: bytes, message: str) -> None:
    trace = case_trace(compiled(DECISION), 0)
    assert before in trace.definition.ir
    definition = replace(trace.definition, ir=trace.definition.ir.replace(before, after))
    carried = Trace.from_bytes(replace(trace, definition=definition).to_bytes())  # with a matching hash
    with pytest.raises(TraceError, match=message):
        replay(carried)
