"""`contracts.observe`: reads before the flow and before each return, journalled, and clauses about them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.host.small import entries, host_in, node_from
from vesper.compiler import compile_source
from vesper.engines.registry import NAMES
from vesper.host.host import Host
from vesper.language.diagnostics.source import SourceFile

PAY_OUT = """\
node_id: pay_out_v1
type: http_handler
intent: Take money from an account

inputs:
  account: string
  cents: {type: integer, constraints: [positive]}

outputs:
  success: {paid: integer, was_whole: boolean}
  error: {error_code: "enum[unknown_account]", message: string}

contracts:
  observe:
    balance:
      operation: database_query
      query: SELECT cents FROM accounts WHERE id = :account
      bind: [account]
      returns: optional<integer>
  postconditions:
    - (balance ?? 0) == (old(balance) ?? 0) - paid
    - paid <= cents

flow:
  - operation: return
    when: cents > 1000
    success: {paid: 0, was_whole: 'false'}

  - step: take
    operation: database_update
    query: UPDATE accounts SET cents = cents - :cents WHERE id = :account
    bind: [account, cents]
    effect: txn

  - operation: raise
    when: take == 0
    error: {error_code: unknown_account, message: "nobody has {account}"}

  - operation: return
    success: {paid: cents, was_whole: 'true'}

security:
  capabilities_required: [database.read.accounts, database.write.accounts]
"""
WRONG = PAY_OUT.replace("cents = cents - :cents WHERE", "cents = cents - :cents - 1 WHERE")
CLAUSE = "(balance ?? 0) == (old(balance) ?? 0) - paid"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    file = tmp_path / "bank.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("CREATE TABLE accounts (id text PRIMARY KEY, cents integer)")
        connection.execute("INSERT INTO accounts VALUES ('ann', 500)")
        connection.commit()
    with host_in(tmp_path, {"databases": {"main": {"dsn": f"sqlite:{file}"}}}) as found:
        yield found


@pytest.mark.parametrize("engine", NAMES)
def test_the_balance_goes_down_by_exactly_the_amount(tmp_path: Path, host: Host, engine: str) -> None:
    outcome = node_from(PAY_OUT, tmp_path, host, engine)(account="ann", cents=120)
    assert outcome.unwrap() == {"paid": 120, "was_whole": True}
    made = [
        (each.path, each.body.get("value")) for each in entries(host, outcome) if each.path and each.kind == "RESULT"
    ]
    assert made == [("balance_before", 500), ("take", 1), ("balance_after_2", 380)]
    early = node_from(PAY_OUT, tmp_path, host, engine)(account="ann", cents=2000)
    assert early.unwrap() == {"paid": 0, "was_whole": False}
    unknown = node_from(PAY_OUT, tmp_path, host, engine)(account="bob", cents=1)
    assert unknown.error is not None
    assert unknown.error.code == "unknown_account"


@pytest.mark.parametrize("engine", NAMES)
def test_an_update_of_another_amount_breaks_the_clause(tmp_path: Path, host: Host, engine: str) -> None:
    outcome = node_from(WRONG, tmp_path, host, engine)(account="ann", cents=120)
    assert outcome.error is not None
    assert outcome.error.kind == "contract_broken"
    assert f"`{CLAUSE}` does not hold: balance_after_2 is 379, balance_before is 500" in outcome.error.message
    why = outcome.explain()
    assert [each.text for each in why.conditions if not each.holds][-1] == CLAUSE


def headlines(text: str) -> list[str]:
    _, bag = compile_source(SourceFile("pay_out_v1.vsp", text))
    return [each.headline for each in bag.sorted()]


def test_a_node_without_observe_keeps_its_meaning_and_faults_are_named() -> None:
    assert headlines(PAY_OUT) == []
    changing = PAY_OUT.replace(
        "SELECT cents FROM accounts WHERE id = :account", "DELETE FROM accounts WHERE id = :account"
    )
    assert any("only reads" in each or "SELECT" in each for each in headlines(changing))
    read = PAY_OUT[PAY_OUT.index("operation: database_query") : PAY_OUT.index("  postconditions:")]
    computed = PAY_OUT.replace(read, "operation: compute\n      value: 1\n")
    assert (
        headlines(computed)[0] == "`balance` must be an effect that reads, such as `database_query`, not another step"
    )
    taken = PAY_OUT.replace("account: string", "account: string\n  balance: integer")
    assert "an observed value cannot be called `balance`" in " ".join(headlines(taken))
    in_flow = PAY_OUT.replace("when: cents > 1000", "when: balance > 1000")
    assert "no input, constant or earlier step is named `balance`" in headlines(in_flow)
    unused = PAY_OUT.replace(f"    - {CLAUSE}\n", "")
    assert any("observed value" in each for each in headlines(unused))
