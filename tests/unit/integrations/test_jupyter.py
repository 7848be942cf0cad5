"""The magics of notebooks, in a shell without a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from vesper.integrations.jupyter import load_ipython_extension

CELL = """%%vesper
node_id: fee_v1
type: function
intent: Fee of an order
inputs:
  amount: decimal
  note: {type: string, default: ""}
outputs:
  success: {fee: decimal}
contracts:
  preconditions: [amount > 0, "note != 'no'"]
flow:
  - operation: return
    success: {fee: amount * 0.1}
testing:
  test_cases:
    - name: ten
      inputs: {amount: "10"}
      expect: {fee: "1.0"}
"""


Run = Callable[[str], Any]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    settings = Config({"HistoryManager": {"enabled": False}})
    shell = InteractiveShell(config=settings, ipython_dir=str(tmp_path))  # type: ignore[no-untyped-call]  # of IPython
    load_ipython_extension(shell)
    return lambda text: shell.run_cell(text).result  # type: ignore[no-untyped-call]  # of IPython


def test_a_cell_defines_a_node_and_runs_its_cases(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(CELL)
    assert "1 of 1 cases pass on both engines\n<Node fee_v1 on python: amount, note -> fee>" in capsys.readouterr().out
    assert str(run("%vesper run fee amount=12345678901234567890.05 note=yes")["fee"]) == "1234567890123456789.005"
    assert run("%vesper run fee amount=1 note=no").error.kind == "contract_broken"
    run(CELL.replace('fee: "1.0"', 'fee: "2.0"'))
    assert "✗ ten: python: returned {fee: 1.0}; interp: returned {fee: 1.0}\n0 of 1" in capsys.readouterr().out
    run("%vesper check fee")
    assert "0 of 1 cases pass" in capsys.readouterr().out


def test_mistakes_are_shown_with_carets(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(CELL.replace("amount * 0.1", "amont * 0.1"))
    shown = capsys.readouterr().out
    assert "--> fee_v1.vsp:13:20" in shown
    assert "^^^^^ unknown name" in shown
    run(CELL.replace("fee_v1", "../fee_v1"))
    assert "cannot be the name of a node" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["%vesper", "%vesper run fee amount", "%vesper run nowhere_to_be_found"])
def test_wrong_use_is_told_without_a_traceback(run: Run, capsys: pytest.CaptureFixture[str], line: str) -> None:
    run(CELL)
    capsys.readouterr()
    run(line)
    captured = capsys.readouterr()
    assert captured.err.startswith("UsageError: ")
    assert "Traceback" not in captured.err + captured.out
