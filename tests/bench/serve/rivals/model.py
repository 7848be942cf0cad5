"""The request and the response of W1 as msgspec reads and writes them, for the rivals that have it."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec

from tests.bench.peers.by_hand import payment_decision


class Payment(msgspec.Struct, forbid_unknown_fields=True):  # type: ignore[call-arg]  # msgspec is only where rivals are
    amount: Decimal
    balance: Decimal
    currency: Literal["USD", "EUR", "GBP"]
    country: Annotated[str, msgspec.Meta(min_length=2, max_length=2)]
    user_age_days: Annotated[int, msgspec.Meta(ge=0)]
    flagged: bool = False


class Decision(msgspec.Struct):
    decision: str
    fee: Decimal
    risk: int
    new_balance: Decimal


read = msgspec.json.Decoder(Payment).decode
write = msgspec.json.Encoder(decimal_format="string").encode


def decide(payment: Payment) -> dict[str, Any]:
    """Decide on a payment. Raises `ValueError` where the contract is broken."""
    return payment_decision(msgspec.structs.asdict(payment))


def decide_json(body: bytes) -> tuple[int, bytes]:
    """Return status and body of the response."""
    try:
        return 200, write(decide(read(body)))
    except ValueError as problem:  # msgspec.ValidationError is one
        return 422, str(problem).encode()
