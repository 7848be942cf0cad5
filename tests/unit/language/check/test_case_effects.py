"""Requests listed in cases: of steps, handlers and called nodes, and their JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nodes import ROOT
from vesper.compiler import compile_file, compile_source
from vesper.engines.python_engine import PythonEngine
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.differential.verifier import meets
from vesper.verify.inputs.responses import UnexpectedRequest, run_case

ASKS = """node_id: asks_v1
type: http_handler
intent: Test
inputs: {s: string}
outputs:
  success: {answer: json}
  error: {error_code: "enum[closed]", message: string}
state_machines:
  order: {initial: open, transitions: {open: [closed]}}
flow:
  - step: ask
    operation: external_api_call
    provider: p
    method: POST
    endpoint: /x/{s}
    body: {text: "{s}", size: 1}
    on_error:
      timeout:
        transition: {step: close, machine: order, entity: s, to: closed}
        return_error: {error_code: closed, message: too late}
  - {operation: return, success: {answer: ask}}
security: {capabilities_required: [network.http_client.p, state.write.order]}
testing:
  test_cases:
    - name: one
      inputs: {s: a}
      effects: [%s]
      expect: %s
"""
CALLS = """node_id: calls_v1
type: workflow
intent: Test
inputs: {s: string}
outputs:
  success: {answer: json}
flow:
  - {step: call, operation: call_node, node: asks_v1, inputs: [s]}
  - {operation: return, success: {answer: call.answer}}
security: {capabilities_required: [network.http_client.p, state.write.order]}
testing:
  test_cases:
    - name: one
      inputs: {s: a}
      effects: [%s]
      expect: %s
"""


def passes(folder: Path, effects: str, expect: str, calls: str | None = None) -> bool | list[str]:
    """Return whether the case passes, or the titles of its diagnostics."""
    if calls is None:
        path, text = folder / "asks_v1.vsp", ASKS % (effects, expect)
    else:
        (folder / "asks_v1.vsp").write_text(ASKS % ("{step: ask, returns: {}}", "{}"), encoding="utf-8")
        path, text = folder / "calls_v1.vsp", calls % (effects, expect)
    path.write_text(text, encoding="utf-8")
    node, bag = compile_file(path)
    if node is None:
        return [each.code.title for each in bag.sorted()]
    try:
        return meets(node.cases[0], run_case(PythonEngine().load(node), node.cases[0]).outcome)
    except UnexpectedRequest:
        return False


@pytest.mark.parametrize(
    "effects, expect, wanted",
    [
        ("{step: ask, returns: {a: [yes sir, 1, true]}}", "{answer: {a: ['yes sir', 1, true]}}", True),
        ("{step: ask, request: {body: {text: a}}, returns: 1}", "{answer: 1}", True),
        ("{step: ask, request: {body: {size: 1}, endpoint: /x/a}, returns: 1}", "{answer: 1}", True),
        ("{step: ask, request: {body: {text: b}}, returns: 1}", "{answer: 1}", False),
        ("{step: ask, request: {body: {size: '1'}}, returns: 1}", "{answer: 1}", False),  # a plain number is one
        ("{step: ask, returns: {a: '{broken'}}", "{answer: {a: '{broken'}}", True),
        ("{step: ask, returns: {a: 1_000}}", "{answer: 1}", ["unclear-json"]),
        ("{step: ask, returns: '{broken'}", "{answer: 1}", ["bad-literal"]),
        ("{step: ask, returns: yes sir}", "{answer: '\"yes sir\"'}", True),
        ("{step: ask, request: {color: red}, returns: 1}", "{answer: 1}", ["unknown-key"]),
        ("{step: task, returns: 1}", "{answer: 1}", ["unknown-name"]),
        ("{step: ask, fails: timeout}, {step: close, returns: open}", "{error: {error_code: closed}}", True),
        ("{step: ask, fails: timeout}, {step: close, returns: shut}", "{error: {}}", ["not-a-member"]),
        ("{step: ask, fails: timeout}", "{error: {error_code: closed}}", False),
        ("{step: ask, returns: 1}, {step: ask, returns: 1}", "{answer: 1}", False),
        ("", "{answer: 1}", False),
    ],
)
def test_case_checks_its_requests(tmp_path: Path, effects: str, expect: str, wanted: bool | list[str]) -> None:
    assert passes(tmp_path, effects, expect) == wanted


@pytest.mark.parametrize(
    "effects, expect, wanted",
    [
        ("{step: call/ask, request: {body: {text: a}}, returns: {b: 1}}", "{answer: {b: 1}}", True),
        ("{step: call/ask, fails: timeout}, {step: call/close, returns: open}", "{fails: closed}", True),
        ("{step: call/ask, fails: timeout}, {step: call/close, returns: shut}", "{fails: closed}", ["not-a-member"]),
        ("{step: call/task, returns: 1}", "{answer: 1}", ["unknown-name"]),
        ("{step: ask, returns: 1}", "{answer: 1}", ["unknown-name"]),
        ("{step: call/ask, returns: 1}", "{fails: opened}", ["code-cannot-happen"]),
    ],
)
def test_case_lists_requests_of_called_nodes(
    tmp_path: Path, effects: str, expect: str, wanted: bool | list[str]
) -> None:
    assert passes(tmp_path, effects, expect, CALLS) == wanted


def test_fixed_field_must_be_text() -> None:
    """A mapping for a fixed field is a diagnostic, not an exception."""
    path = ROOT / "nodes" / "payments" / "payment_handler_v1.vsp"
    text = path.read_text(encoding="utf-8")
    spoilt = text.replace("to: processing}, returns", "to: {a: b}}, returns", 1)
    assert spoilt != text
    _, bag = compile_source(SourceFile(path.as_posix(), spoilt))
    assert Code.WRONG_KIND in {each.code for each in bag.sorted()}
