"""Every YAML block of the founding document loads, or the message names what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from vesper.compiler import compile_source
from vesper.language.diagnostics.diagnostic import Diagnostic
from vesper.language.diagnostics.source import SourceFile

HERE = Path(__file__).parent
MINIMAL = """\
type: function
intent: Stand around a fragment
inputs: {a: integer}
outputs: {success: {b: integer}}
flow:
  - operation: return
    success: {b: a}
"""
AROUND_TYPES = MINIMAL.replace("{a: integer}", "{a: integer, user: User}")
AROUND_CONTRACTS = """\
node_id: pay_v1
type: function
intent: Stand around a fragment
types:
  User: {fields: {authenticated: boolean, balance: decimal}}
  Order: {fields: {status: "enum[pending, paid, payment_failed]"}}
inputs: {amount: decimal, user: User, order: Order, all_user_balances: array<decimal>, total_system_balance: decimal}
outputs: {success: {done: boolean}, error: {error_code: "enum[declined]"}}
flow:
  - operation: raise
    when: amount > 100
    error: {error_code: declined}
  - operation: return
    success: {done: amount < 10}
"""
FILLED = {
    "capability_type": "function",
    "created: timestamp": "created: 2025-01-08T14:23:15Z",
    "dependencies: [node_ids]": "dependencies: []",
    "string | integer | decimal | boolean | custom_type": "integer",
    "[validation_rules]": "[{min: 0}]",
    "required: boolean": "required: true",
    "default: value": "default: 1",
    "field_name: type": "field_name: decimal",
    "enum[...]": "enum[negative]",
    "[logical_expressions]": "[1 < 2]",
    "[never_violated_properties]": "[1 < 2]",
    "operation_type": "compute",
    "parameters: {...}": "parameters: {value: 10 / param_name}",
    "[conditional_checks]": "[param_name < 100]",
    "error_handling: {...}": "error_handling: {any: {value: 0.0}}",
    "integer\n  memory": "20\n  memory",
    "memory_limit_mb: integer": "memory_limit_mb: 64",
    "timeout_seconds: integer": "timeout_seconds: 5",
    "[capability_list]": "[]",
    "sensitive_data: boolean": "sensitive_data: true",
    "none | basic | detailed": "basic",
}


def block(name: str) -> str:
    return (HERE / f"{name}.yaml").read_text(encoding="utf-8")


def problems(text: str, name: str = "founding_v1") -> list[Diagnostic]:
    _, bag = compile_source(SourceFile(f"{name}.vsp", text))
    return [each for each in bag.sorted() if each.severity.value == "error"]


def test_the_structure_of_a_node_loads_with_its_placeholders_filled() -> None:
    text = block("node_structure")
    for placeholder, value in FILLED.items():
        assert placeholder in text, placeholder
        text = text.replace(placeholder, value)
    text = text.replace(
        "\nperformance:",
        """
  - operation: raise
    when: param_name == 0
    error: {error_code: negative, message: "'none'"}
  - operation: return
    success: {field_name: step_name ?? 0.0}

performance:""",
    )
    assert [str(each.headline) for each in problems(text, "unique_identifier_v1")] == []


def test_every_placeholder_of_the_structure_gets_a_message_that_names_what_to_write() -> None:
    found = problems(block("node_structure"), "unique_identifier_v1")
    told = [f"{each.headline}; {each.help or ''}" for each in found]
    assert len(told) == 14
    for expected in (
        "`type` must be `function`, `data_transform`",
        "is not a date or a timestamp: `2026-11-15`, `2026-11-15T12:00:00Z`",
        "a value has one type: write one of them, or `json`",
        "`required` must be `true` or `false`",
        "write its members: `enum[paid, declined]`",
        "the operations are compute, decision_table",
        "`sensitive_data` must be `true` or `false`",
        "`audit_level` must be `none`, `basic` or `detailed`",
    ):
        assert any(expected in each for each in told), expected


@pytest.mark.parametrize(
    "name, around",
    [
        ("custom_types", f"node_id: founding_v1\n{AROUND_TYPES}"),
        ("capabilities", MINIMAL),
        ("audit_level", MINIMAL),
    ],
)
def test_a_fragment_loads_inside_a_node(name: str, around: str) -> None:
    fragment = block(name).partition("# Generates audit log:")[0]
    named = fragment.replace("node_id: payment_handler\n", "node_id: payment_handler_v1\n")
    assert [each.headline for each in problems(f"{named}\n{around}", "payment_handler_v1")] == []


def test_an_id_without_a_version_is_written_with_one() -> None:
    (found,) = [each for each in problems(f"{block('capabilities')}\n{MINIMAL}") if "payment_handler" in each.headline]
    assert found.help == "write `payment_handler_v1`: `_v1` is its version"


def test_the_lines_of_the_audit_log_are_no_yaml() -> None:
    assert {each.code.number for each in problems(block("audit_level"))} == {"VSP0002", "VSP0010"}


def test_contracts_load_or_name_their_replacement() -> None:
    found = {each.headline: each.help for each in problems(AROUND_CONTRACTS + block("contract_language"), "pay_v1")}
    assert found == {
        "no output, input or constant is named `transaction`": (
            "state that the node reads or changes is named under `contracts`: `observe: {transaction: {operation: …}}`"
        ),
        "outside invariants no error is named `logged`": (
            "every error is logged under `security: {audit_level: basic}`; whether one occurred is "
            "`error.error_code IS NOT NULL`, under `invariants`"
        ),
        "outside invariants no error is named `occurred`": (
            "whether an error occurred is `error.error_code IS NOT NULL`, under `invariants`: postconditions hold only "
            "where the node returns"
        ),
        "no function is named `all`": (
            "write `FORALL user IN users SATISFIES user.balance >= 0`, over the collection of each `user`"
        ),
    }


def test_the_replacements_of_the_contracts_load() -> None:
    text = (
        AROUND_CONTRACTS.replace("done: amount < 10", "done: user.balance >= amount")
        + """\
contracts:
  preconditions: [amount > 0, user.authenticated, order.status == 'pending']
  postconditions: ["order.status IN ['pending', 'paid', 'payment_failed']"]
  invariants:
    - SUM(all_user_balances) == total_system_balance
    - error.error_code IS NOT NULL OR output.done IS NOT NULL
    - FORALL balance IN all_user_balances SATISFIES balance >= 0
"""
    )
    assert [each.headline for each in problems(text, "pay_v1")] == []
