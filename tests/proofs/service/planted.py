"""The planted faults of the service's direct engine, selected by the amount of an order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from vesper.engines.engine import Done, Request
from vesper.engines.outcome import Returned

EVERY = {"lie": (100, 13), "lie_request": (200, 57), "abort": (500, 111), "hang": (1500, 7)}
"""Modulus in cents: amounts with the remainder of a fault have it."""


def fault_of(amount: object) -> str | None:
    if not isinstance(amount, Decimal):
        return None
    cents = int(amount * 100)
    return next((kind for kind, (every, rest) in EVERY.items() if cents % every == rest), None)


def lied(inputs: Mapping[str, object], done: Done) -> Done:
    """Return another transaction id."""
    if fault_of(inputs.get("amount")) != "lie" or not isinstance(done.outcome, Returned):
        return done
    value = done.outcome.value
    return replace(done, outcome=Returned({**value, "transaction_id": f"{value['transaction_id']}!"}))


def lied_about(request: Request) -> Request:
    """Return another amount."""
    body: Any = request.arguments.get("body")
    if request.path != "call_stripe_api" or fault_of(Decimal(body["amount"]) / 100) != "lie_request":
        return request
    return replace(request, arguments={**request.arguments, "body": {**body, "amount": 1}})
