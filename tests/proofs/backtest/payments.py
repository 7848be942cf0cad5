"""Payments of the proof: two nodes with a fee row to change, their inputs by number, and an oracle in plain Python.

`settled_payment` asks a scoring service before it decides; `audited_fee` is a pure decision whose runs are audited.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

COUNTRIES = ("DE", "FR", "GB", "US")

_FEE = """\
  - step: fee
    operation: decision_table
    rows:
      - {{when: amount <= 100,  then: 0.30}}
      - {{when: amount <= 1000, then: amount * {rate}}}
      - {{otherwise: amount * 0.019}}
"""

_SETTLED = """\
node_id: settled_payment_v{version}
type: http_handler
intent: Score a payment, decide and charge a fee
inputs:
  payment_id: string
  amount: decimal
  country: enum[DE, FR, GB, US]
  vip: {{type: boolean, default: false}}
outputs:
  success: {{decision: "enum[approve, review, decline]", fee: decimal}}
  error:
    error_code: enum[no_score]
    message: string
flow:
  - step: scored
    operation: external_api_call
    provider: scoring
    method: GET
    endpoint: /scores/{{payment_id}}
    expect: {{score: integer}}
    on_error:
      http_404:
        return_error: {{error_code: no_score, message: "there is no score"}}
{fee}
  - step: decision
    operation: decision_table
    rows:
      - {{when: scored.score >= {decline} AND NOT vip, then: decline}}
      - {{when: scored.score >= 60, then: review}}
      - {{otherwise: approve}}
  - operation: return
    success: [decision, fee]
security:
  capabilities_required: [network.http_client.scoring]
"""

_AUDITED = """\
node_id: audited_fee_v{version}
type: function
intent: Decide on a payment and its fee
inputs:
  payment_id: string
  amount: decimal
  country: enum[DE, FR, GB, US]
  vip: {{type: boolean, default: false}}
outputs:
  success: {{decision: "enum[approve, review, decline]", fee: decimal}}
flow:
{fee}
  - step: decision
    operation: decision_table
    rows:
      - {{when: amount > 1100 AND NOT vip, then: decline}}
      - {{when: amount > 900, then: review}}
      - {{otherwise: approve}}
  - operation: return
    success: [decision, fee]
security:
  audit_level: basic
"""

KINDS = ("settled_payment", "audited_fee")


def node_text(kind: str, version: int) -> str:
    """Return a version of a node: the second has another rate in one row, and declines earlier."""
    rate, decline = (("0.025", 85), ("0.027", 80))[version - 1]
    fee = _FEE.format(rate=rate)
    template = _SETTLED if kind == KINDS[0] else _AUDITED
    return template.format(version=version, fee=fee, decline=decline)


@dataclass(frozen=True, slots=True)
class Payment:
    """The inputs of a run, by its number, and what the service answered."""

    payment_id: str
    amount: Decimal
    country: str
    vip: bool
    score: int | None
    """None: the service has no such payment."""


def payment(number: int) -> Payment:
    """Return the payment with this number; the same for ever."""
    mixed = number * 0x9E3779B97F4A7C15 % (1 << 64)
    mixed ^= mixed >> 29
    amount = Decimal(100 + mixed % 119_900).scaleb(-2)
    score = (mixed >> 33) % 101
    return Payment(
        f"pay_{number:08}", amount, COUNTRIES[(mixed >> 21) % 4], mixed % 7 == 0, None if score == 100 else score
    )


def outcome(kind: str, version: int, of: Payment) -> tuple[str, Decimal | None]:
    """Return the decision and the fee by the rules of the text, without Vesper; of an error its code and None."""
    has_score = kind == KINDS[0]
    if has_score and of.score is None:
        return "no_score", None
    rate, decline = ((Decimal("0.025"), 85), (Decimal("0.027"), 80))[version - 1]
    if of.amount <= 100:
        fee = Decimal("0.30")
    else:
        fee = of.amount * (rate if of.amount <= 1000 else Decimal("0.019"))
    if has_score:
        score = of.score or 0
        is_declined, is_reviewed = score >= decline and not of.vip, score >= 60
    else:
        is_declined, is_reviewed = of.amount > 1100 and not of.vip, of.amount > 900
    return "decline" if is_declined else "review" if is_reviewed else "approve", fee


@dataclass(slots=True)
class Oracle:
    """Counts by brute force."""

    runs: int = 0
    changed: int = 0
    before: Decimal = Decimal(0)
    after: Decimal = Decimal(0)
    kinds: dict[str, int] = field(default_factory=dict)
    by_country: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, kind: str, of: Payment) -> None:
        (one, fee), (other, new_fee) = (outcome(kind, version, of) for version in (1, 2))
        parts = []
        if one != other:
            parts.append(f'decision: "{one}" → "{other}"')
        if fee != new_fee:
            parts.append(f"fee {'rises' if (new_fee or 0) > (fee or 0) else 'falls'}")
        self.runs += 1
        self.changed += bool(parts)
        self.before += fee or 0
        self.after += new_fee or 0
        runs, changed = self.by_country.get(of.country, (0, 0))
        self.by_country[of.country] = runs + 1, changed + bool(parts)
        if parts:
            name = ", ".join(parts)
            self.kinds[name] = self.kinds.get(name, 0) + 1
