"""The folder of the demo: two nodes, `vesper.toml`, and the database of a shop."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

DECISION, HANDLER = "payment_decision_v1", "payment_handler_v1"
RIGHT_FEE, WRONG_FEE = "amount * 0.025 + 0.50", "amount * 0.026 + 0.50"
"""The fee above 100, and what the direct engine computes once the fault is planted."""
SAMPLE_PERCENT = 20
SETTINGS = f"""\
[serve]
expose = ["payment_decision"]

[migration]
sample = "{SAMPLE_PERCENT} %"
follow_cpu = "100 %"
refresh = "100ms"
"""
"""Settings that differ from the defaults so that a minute suffices."""
_CONFIG = """\
[[grants]]
nodes = ["*"]
allow = ["*"]

[providers.stripe]
base_url = "{provider}"
allow_private_addresses = true

[databases.main]
dsn = "sqlite:shop.db"

[state]
database = "main"

[journal]
dsn = "sqlite:journal.db"

"""
_TABLES = """\
CREATE TABLE transactions (
    transaction_id text PRIMARY KEY, order_id text, amount text, idempotency_key text UNIQUE, created_at text
);
"""
_DECISION = """\
node_id: payment_decision_v1
type: function
intent: Decide whether a card payment goes through, and what it costs

inputs:
  amount:        decimal
  balance:       decimal
  country:       {type: string, constraints: [{length: 2}]}
  user_age_days: {type: integer, constraints: [{min: 0}]}

outputs:
  success:
    decision: enum[approve, review, decline]
    fee:      decimal
    risk:     integer

constants:
  high_risk: {type: set<string>, value: [NG, RU, KP, IR]}

contracts:
  preconditions:
    - amount > 0
  postconditions:
    - fee >= 0

flow:
  - step: fee
    operation: decision_table
    rows:
      - {when: amount <= 100, then: amount * 0.029 + 0.30}
      - {otherwise: amount * 0.025 + 0.50}

  - step: risk
    operation: compute
    value: (IF user_age_days < 30 THEN 40 ELSE 0) + (IF country IN high_risk THEN 15 ELSE 0)

  - step: decision
    operation: decision_table
    rows:
      - {when: amount + fee > balance, then: decline}
      - {when: risk >= 40, then: review}
      - {otherwise: approve}

  - operation: return
    success: [decision, fee, risk]
"""
_HANDLER = """\
node_id: payment_handler_v1
type: http_handler
intent: Charge a card exactly once, record the transaction and settle the order

inputs:
  order_id:        {type: string, constraints: [non_empty, {max_length: 64}]}
  user_id:         {type: string, constraints: [non_empty]}
  amount:          {type: decimal, constraints: [positive, {max: 50000}]}
  idempotency_key: optional<string>

outputs:
  success:
    transaction_id: string
    amount_charged: decimal
  error:
    error_code: enum[order_not_pending, provider_unavailable]
    message: string

state_machines:
  order_lifecycle:
    initial: pending
    transitions:
      pending: [processing]
      processing: [paid, payment_failed]
      payment_failed: [processing]

contracts:
  preconditions:
    - scale(amount) <= 2

flow:
  - step: begin
    operation: state_machine_transition
    machine: order_lifecycle
    entity: order_id
    from: [pending, payment_failed]
    to: processing
    on_error:
      invalid_transition:
        return_error: {error_code: order_not_pending, message: "order {order_id} is not to be paid"}

  - step: charge
    operation: external_api_call
    provider: stripe
    method: POST
    endpoint: /v1/charges
    body: {amount: "{to_integer(amount * 100)}", currency: usd, customer: "{user_id}"}
    effect: keyed                          # the provider knows the key: sent again under it after a crash
    key: order_id
    timeout: 30s
    retry: {attempts: 3, on: [timeout, unavailable], backoff: {base: 200ms, factor: 2, max: 5s, jitter: full}}
    expect: {id: string}
    on_error:
      timeout, unavailable, http_5xx:
        transition: {step: mark_unavailable, machine: order_lifecycle, entity: order_id, to: payment_failed}
        return_error: {error_code: provider_unavailable, message: "the provider did not answer"}

  - step: record
    operation: database_write
    table: transactions
    data:
      transaction_id: charge.id
      order_id: order_id
      amount: amount
      idempotency_key: idempotency_key
      created_at: now()
    effect: txn

  - step: settle
    operation: state_machine_transition
    machine: order_lifecycle
    entity: order_id
    from: processing
    to: paid

  - operation: return
    success: {transaction_id: charge.id, amount_charged: amount}

security:
  capabilities_required:
    - database.write.transactions
    - state.write.order_lifecycle
    - network.http_client.stripe

http:
  method: POST
  path: /payments
  headers: {idempotency_key: Idempotency-Key}
  status: 201
  errors: {order_not_pending: 409, provider_unavailable: 503}
"""


def make_shop(folder: Path, provider: str) -> None:
    """Write the nodes, the settings and the tables."""
    nodes = folder / "nodes"
    nodes.mkdir()
    for node_id, text in ((DECISION, _DECISION), (HANDLER, _HANDLER)):
        (nodes / f"{node_id}.vsp").write_text(text, encoding="utf-8")
    (folder / "vesper.toml").write_text(_CONFIG.format(provider=provider) + SETTINGS, encoding="utf-8")
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.executescript(_TABLES)


def recorded_orders(folder: Path) -> dict[str, str]:
    """Return the transactions of the database, by order."""
    with closing(sqlite3.connect(folder / "shop.db", timeout=30)) as connection:
        return dict(connection.execute("SELECT order_id, transaction_id FROM transactions"))


def faulty_text() -> str:
    """Return the decision node with a wrong fee, which the planted fault lets the direct engine run."""
    assert _DECISION.count(RIGHT_FEE) == 1
    return _DECISION.replace(RIGHT_FEE, WRONG_FEE)
