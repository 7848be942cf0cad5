"""Steps that suspend a run: their fields, types and defaults, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from vesper.compiler import Compiled, compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.values.generated.effects import INTERRUPT_KINDS
from vesper.values.types import BOOLEAN, STRING, OptionalOf, Record

NODE = """node_id: waits_v1
type: {type}
intent: Test
inputs: {{s: string, at: timestamp, d: duration, xs: {{type: array<integer>, default: []}}}}
outputs:
  success: {{s: string}}
  error: {{error_code: "enum[cancelled, timeout, unavailable]", message: string}}
flow:
  - step: w
    {step}
  - {{operation: return, success: [s]}}
security: {{capabilities_required: [{capability}]}}
"""
SLEEP = "clock.sleep.system"
SIGNAL = "signals.receive.paid"


def compile_step(step: str, capability: str, type_: str = "http_handler") -> tuple[Compiled | None, list[str]]:
    text = NODE.format(type=type_, step="\n    ".join(step.split("; ")), capability=capability)
    found, bag = compile_source(SourceFile("waits_v1.vsp", text))
    return found, [f"{each.code.title}: {each.headline}" for each in bag.sorted()]


def request(step: str, capability: str) -> ir.Request:
    found, problems = compile_step(step, capability)
    assert found is not None, problems
    statement = found.node.body[0]
    assert isinstance(statement, ir.Request)
    return statement


def test_a_length_is_a_text_or_an_expression() -> None:
    (written,) = request("operation: sleep; duration: 1h30m", SLEEP).arguments
    assert (written[0], getattr(written[1], "value", None)) == ("duration", timedelta(minutes=90))
    assert isinstance(dict(request("operation: sleep; duration: d * 2", SLEEP).arguments)["duration"], ir.Call)
    assert isinstance(dict(request("operation: sleep; until: at", SLEEP).arguments)["until"], ir.Ref)
    waiting = request("operation: wait_for; signal: paid; match: s; timeout: 7d", SIGNAL)
    assert [name for name, _ in waiting.arguments] == ["match", "timeout"]
    assert waiting.policy == {}


@pytest.mark.parametrize("kind", INTERRUPT_KINDS)
def test_an_interrupt_has_the_time_to_live_of_its_kind(kind: str) -> None:
    step = f"operation: interrupt; kind: {kind}; message: 'Ask {{s}}'; returns: boolean"
    arguments = dict(request(step, f"interrupts.raise.{kind}").arguments)
    ttl_us = INTERRUPT_KINDS[kind].ttl_us
    found = getattr(arguments.get("ttl"), "value", None)
    assert found == (None if ttl_us is None else timedelta(microseconds=ttl_us))
    shorter = dict(request(f"{step}; ttl: 5s", f"interrupts.raise.{kind}").arguments)
    assert getattr(shorter["ttl"], "value", None) == timedelta(seconds=5)


def test_an_answer_has_its_declared_type_and_is_sensitive_where_declared() -> None:
    step = "operation: wait_for; signal: paid"
    assert request(step, SIGNAL).result.type == OptionalOf(STRING)
    record = Record((("approved", BOOLEAN), ("note", OptionalOf(STRING))))
    inline = request(f"{step}; returns: {{approved: boolean, note: optional<string>}}", SIGNAL)
    assert (inline.result.type, inline.sensitive) == (record, False)
    assert request(f"{step}; returns: {{type: string, sensitive: true}}", SIGNAL).sensitive is True


@pytest.mark.parametrize(
    "step, capability, problem",
    [
        ("operation: sleep", SLEEP, "wrong-kind: `sleep` must be `duration` or `until`, not neither"),
        (
            "operation: sleep; duration: 1h; until: at",
            SLEEP,
            "wrong-kind: `sleep` must be `duration` or `until`, not both",
        ),
        ("operation: sleep; duration: -1h", SLEEP, "bad-literal: `duration` is not a duration longer than nothing"),
        ("operation: sleep; duration: s", SLEEP, "type-mismatch: expected duration, found string"),
        ("operation: sleep; until: d", SLEEP, "type-mismatch: expected timestamp, found duration"),
        ("operation: sleep; duration: 1h; retry: {attempts: 2}", SLEEP, "unknown-key: a sleep has no field `retry`"),
        ("operation: sleep; duration: 1h; key: s", SLEEP, "unknown-key: a sleep has no field `key`"),
        ("operation: sleep; duration: 1h", "", "missing-capability"),
        ("operation: wait_for", SIGNAL, "missing-key: a wait for a signal needs `signal`"),
        ("operation: wait_for; signal: paid; match: d", SIGNAL, "type-mismatch: expected string, found duration"),
        ("operation: interrupt; kind: question; message: x", "", "wrong-kind: `kind` must be"),
        (
            "operation: interrupt; kind: confirmation; message: x",
            "interrupts.raise.confirmation",
            "missing-key: an interrupt of kind `confirmation` needs `returns`",
        ),
    ],
)
def test_what_is_refused(step: str, capability: str, problem: str) -> None:
    found, problems = compile_step(step, capability)
    assert found is None
    assert any(each.startswith(problem) for each in problems), problems


@pytest.mark.parametrize("type_", ["function", "data_transform"])
def test_nodes_that_only_compute_or_read_never_wait(type_: str) -> None:
    found, problems = compile_step("operation: sleep; duration: 1h", SLEEP, type_)
    assert found is None
    assert any("sleep" in each for each in problems), problems


def test_a_case_needs_an_answer_of_every_wait_but_a_sleep() -> None:
    text = NODE.format(type="http_handler", step="operation: wait_for\n    signal: paid", capability=SIGNAL)
    case = "{name: one, inputs: {s: a, at: 2026-11-15T12:00:00Z, d: 1h}, effects: [{step: w}], expect: {s: a}}"
    _, bag = compile_source(SourceFile("waits_v1.vsp", f"{text}testing: {{test_cases: [{case}]}}\n"))
    assert [each.headline for each in bag.sorted()] == ["`effects` must be `returns` or `fails`, not neither"]
