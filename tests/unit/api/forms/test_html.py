"""HTML of nodes, outcomes and traces: escaped, small, without scripts."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import vesper
from tests.unit.api.given import NODES, PAYMENT, written
from vesper.trace.recorder import record_trace

EVIL = "</b><script>alert(1)</script>&"
ECHO = f"""\
node_id: echo_v1
type: function
intent: {EVIL!r}
inputs:
  text: {{type: string, default: {EVIL!r}}}
outputs:
  success: {{text: string}}
contracts:
  preconditions: ["text != 'none'"]
flow:
  - operation: return
    success: {{text: text}}
"""


def texts(html: str) -> list[str]:
    """The texts of a well-formed piece of HTML."""
    assert "<script" not in html
    return [text for text in ET.fromstring(html).itertext() if text.strip()]


def test_a_node_and_its_outcomes_are_escaped(tmp_path: Path) -> None:
    node = vesper.load(written(tmp_path, ECHO))
    assert any(EVIL in text for text in texts(node._repr_html_()))
    assert texts(node()._repr_html_()) == ["echo_v1", " ✓", "output", "value", "text", f'"{EVIL}"']
    found = texts(node(text="none")._repr_html_())
    assert found[:2] == ["echo_v1", " ✗ contract_broken precondition"]
    assert "does not hold" in found[2]


def test_long_values_are_cut(tmp_path: Path) -> None:
    node = vesper.load(written(tmp_path, ECHO))
    assert len(node(text="x" * 100_000)._repr_html_()) < 1_500


def test_a_trace_shows_its_steps() -> None:
    node = vesper.load("payment_decision", nodes=NODES)
    trace = record_trace(node._compiled, node._program, "python", "t-1", PAYMENT, None)
    found = texts(trace._repr_html_())
    assert found[0] == "payment_decision_v1"
    assert any("✓ fee" in text for text in found)


def test_an_explanation_is_markdown() -> None:
    explanation = vesper.load("payment_decision", nodes=NODES)(**PAYMENT).explain(nearest=False)
    assert explanation._repr_markdown_() == explanation.markdown
