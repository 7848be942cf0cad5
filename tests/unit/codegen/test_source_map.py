"""Exceptions of generated code name the line of the `.vsp` file, whoever runs it: plain Python, or the engine."""

from __future__ import annotations

import re
import subprocess
import sys
import traceback
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import PAYMENT_DECISION, ROOT, compiled, compiled_text, worked_nodes
from vesper.codegen.module import generate_module
from vesper.engines.python_engine import PythonEngine
from vesper.kernels.raised import BadInput, ContractBroken, DeclaredError, Raised
from vesper.kernels.runtime.source import Source

GOOD: dict[str, Any] = {
    "amount": Decimal("50.00"), "balance": Decimal("100.00"), "currency": "USD", "country": "DE", "user_age_days": 400,
}  # fmt: skip
SMALL = """\
node_id: small_v1
type: function
intent: Fail in every way
inputs:
  a: integer
  b: decimal
outputs:
  success:
    result: decimal
  error:
    error_code: enum[too_small, division_by_zero]
contracts:
  postconditions:
    - result < 1000
flow:
  - operation: conditional
    condition: a < 0
    then:
      - operation: raise
        error: {error_code: too_small}
  - step: twice
    operation: compute
    value: a * 2
  - step: result
    operation: compute
    value: >
      b
      * b / a
  - operation: return
    success: [result]
"""


def small(text: str = SMALL) -> Any:
    return PythonEngine().load(compiled_text(text, "nodes/small_v1.vsp")).entry


def test_a_broken_clause() -> None:
    with pytest.raises(ContractBroken) as caught:
        PythonEngine().load(compiled(PAYMENT_DECISION)).entry({**GOOD, "amount": Decimal(-1)})
    assert str(caught.value) == f"{PAYMENT_DECISION}:25: precondition `amount > 0` does not hold: amount = -1"


def test_a_broken_promise_says_that_the_node_is_wrong() -> None:
    with pytest.raises(ContractBroken) as caught:
        small()({"a": 1, "b": Decimal(100)})
    assert str(caught.value) == ("nodes/small_v1.vsp:14: postcondition `result < 1000` does not hold: result = 10000")
    assert "the node is wrong" in "".join(traceback.format_exception(caught.value))


def test_a_failure() -> None:
    with pytest.raises(Raised) as caught:
        small()({"a": 2**62, "b": Decimal(1)})
    assert str(caught.value) == "nodes/small_v1.vsp:23: integer_overflow"


def test_a_bare_operator_that_loses_digits() -> None:
    with pytest.raises(Raised) as caught:
        small()({"a": 1, "b": Decimal("9" * 900)})
    assert re.fullmatch(r"nodes/small_v1\.vsp:2[78]: decimal_overflow", str(caught.value))


def test_a_declared_error() -> None:
    with pytest.raises(DeclaredError) as caught:
        small()({"a": -1, "b": Decimal(1)})
    assert str(caught.value) == "nodes/small_v1.vsp:20: the node ends with its error `too_small`"


def test_a_failure_that_becomes_a_declared_error_is_named_by_the_place_that_failed() -> None:
    with pytest.raises(DeclaredError) as caught:
        small()({"a": 0, "b": Decimal(1)})
    assert re.fullmatch(
        r"nodes/small_v1\.vsp:2[78]: the node ends with its error `division_by_zero`", str(caught.value)
    )


def test_bad_inputs_say_what_was_expected_and_what_came() -> None:
    given = {"amount": 0.1, "balance": True, "currency": "JPY", "country": "D\ud800", "flagged": object(), "zeta": 1,
             "user_age_days": 10**5000}  # fmt: skip
    with pytest.raises(BadInput) as caught:
        PythonEngine().load(compiled(PAYMENT_DECISION)).entry(given)
    assert str(caught.value).splitlines() == [
        f"{PAYMENT_DECISION}: bad inputs:",
        (
            "  amount is 0.1 (float), and not a decimal: an object of another type; a float is not exact, "
            'give a Decimal or a text ("0.10")'
        ),
        "  balance is true (bool), and not a decimal: an object of another type",
        '  currency is "JPY" (str), and not an enum[USD, EUR, GBP]: it is none of the members',
        '  country is "D\\ud800" (str), and not a string: it is not in the form of the type',
        "  user_age_days is an int of 16610 bits, and not an integer: it is over a limit of the type",
        "  flagged is an object of type object, and not a boolean: an object of another type",
        "  zeta is unknown: nothing has this name",
    ]


def test_a_traceback_shows_the_lines_of_generated_code() -> None:
    with pytest.raises(ContractBroken) as caught:
        PythonEngine().load(compiled(PAYMENT_DECISION)).entry({**GOOD, "amount": Decimal(-1)})
    shown = "".join(traceback.format_exception(caught.value))
    assert 'raise ContractBroken("precondition", 0, {"amount": amount})' in shown
    assert shown.endswith("change the inputs or the clause\n")


def test_notes_can_be_added() -> None:
    error = ContractBroken("precondition", 0, {})
    error.add_note("mine")
    assert [note[:4] for note in error.__notes__] == ["help", "mine"]
    assert str(error) == "precondition 1 does not hold", "one that was never raised has no place"


def test_a_compiled_file_says_it_under_plain_python(tmp_path: Path) -> None:
    """As `vesper compile -o` writes it, run where no `.vsp` file and no engine is."""
    (tmp_path / "decision.py").write_text(
        generate_module(compiled(PAYMENT_DECISION.relative_to(ROOT)).node).text, encoding="utf-8"
    )
    code = (
        "from decimal import Decimal; from decision import call; "
        "call({'amount': Decimal(-1), 'balance': 1, 'currency': 'USD', 'country': 'DE', 'user_age_days': 1})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}"},
    )  # fmt: skip
    wanted = "nodes/payments/payment_decision_v1.vsp:25: precondition `amount > 0` does not hold: amount = -1"
    assert done.stderr.splitlines()[-2] == f"vesper.kernels.raised.ContractBroken: {wanted}"
    assert 'raise ContractBroken("precondition", 0, {"amount": amount})' in done.stderr
    assert done.stderr.splitlines()[-1].startswith("help: ")


def test_every_line_of_a_table_is_one_that_can_end_the_node() -> None:
    for path in worked_nodes()[::6]:
        node = compiled(path).node
        text = generate_module(node).text
        table: dict[str, Any] = {"Final": object(), "Source": Source}
        exec("SOURCE = Source" + text.rpartition("SOURCE: Final = Source")[2], table)
        source = table["SOURCE"]
        lines, of_node = text.splitlines(), path.read_text(encoding="utf-8").splitlines()
        raising = {
            number for number, line in enumerate(lines, 1) if re.match(r" +raise (Contract|Declared)\w+\(", line)
        }
        assert {number for number in raising if "from failure" not in lines[number - 1]} <= set(source.lines)
        assert all(0 < line <= len(of_node) for line in source.lines.values())
        assert list(source.lines) == sorted(source.lines)
