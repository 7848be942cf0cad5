"""Editing one parameter of one step leaves all other text unchanged."""

from __future__ import annotations

import pytest

from vesper.language.diagnostics.source import SourceFile
from vesper.replay.source_edit import EditRejected, edit_step

TEXT = """\
node_id: pay_v1
flow:
  - step: ask                     # a comment
    operation: external_api_call
    timeout: 30s                  # kept
    retry: {attempts: 3, on: [timeout]}
    on_error:
      timeout:
        compensate:
          - {step: undo, operation: compute, value: "amount + 1"}
  - step: fee
    operation: compute
    value: 'amount * 2'
  - step: old
    operation: external_api_call
    parameters:
      timeout: 5s
  - step: long
    operation: compute
    value: |
      amount
"""


def edited(step: str, keys: str, new: str) -> tuple[str, str | None]:
    """Return the changed lines and the previous value."""
    found = edit_step(SourceFile("pay_v1.vsp", TEXT), step, keys.split("."), new)
    before, after = TEXT.splitlines(), found.text.splitlines()
    return "\n".join(line for line in after if line not in before), found.before


@pytest.mark.parametrize(
    "step, keys, new, line, before",
    [
        ("ask", "timeout", "60s", "    timeout: 60s                  # kept", "30s"),
        ("ask", "retry.attempts", "5", "    retry: {attempts: 5, on: [timeout]}", "3"),
        ("ask", "retry.on", "[http_5xx]", "    retry: {attempts: 3, on: [http_5xx]}", "[timeout]"),
        ("ask", "retry.jitter", "full", "    retry: {attempts: 3, on: [timeout], jitter: full}", None),
        ("ask", "effect", "keyed", "    effect: keyed", None),
        ("fee", "value", "amount * 3", "    value: amount * 3", "'amount * 2'"),
        ("fee", "value", "'x' + y", "    value: \"'x' + y\"", "'amount * 2'"),
        ("fee", "value", "IF a THEN b: c", '    value: "IF a THEN b: c"', "'amount * 2'"),
        (
            "undo", "value", "max(a, b)",
            '          - {step: undo, operation: compute, value: "max(a, b)"}', '"amount + 1"',
        ),
        ("old", "timeout", "9s", "      timeout: 9s", "5s"),
    ],
)  # fmt: skip
def test_an_edit(step: str, keys: str, new: str, line: str, before: str | None) -> None:
    assert edited(step, keys, new) == (line, before)


@pytest.mark.parametrize(
    "step, keys, new, message",
    [
        ("aks", "timeout", "1s", "did you mean `ask`"),
        ("ask", "timeout.more", "1s", "has no parts"),
        ("ask", "rate.limit", "1", "has no `rate`"),
        ("ask", "on_error", "x", "several lines"),
        ("long", "value", "x", "several lines"),
        ("fee", "value", "a\nb", "on one line"),
    ],
)
def test_an_edit_that_cannot_be_made(step: str, keys: str, new: str, message: str) -> None:
    with pytest.raises(EditRejected, match=message):
        edited(step, keys, new)
