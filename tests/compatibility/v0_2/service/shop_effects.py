"""Effects of the service's nodes. Each performed effect adds one line to `performed.jsonl`."""

from __future__ import annotations

import json
import os
import signal
from decimal import Decimal
from pathlib import Path

import vesper

_PERFORMED = Path(__file__).with_name("performed.jsonl")
_KILL_AT = "COMPATIBILITY_KILL_AT"


def _perform(name: str, **fields: str) -> None:
    if os.environ.get(_KILL_AT) == name:
        os.kill(os.getpid(), signal.SIGKILL)
    with _PERFORMED.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"effect": name, **fields}) + "\n")


@vesper.effect("known", effect_class="read")
def known(customer: str) -> int:
    _perform("known", customer=customer)
    return len(customer)


@vesper.effect("charge", effect_class="keyed")
def charge(customer: str, amount: Decimal, key: str) -> dict[str, object]:
    _perform("charge", customer=customer, amount=str(amount), key=key)
    if customer == "broke":
        raise vesper.EffectFailed("unavailable", "the provider does not answer")
    return {"id": f"ch_{customer}", "note": None}


@vesper.effect("wire", effect_class="unsafe")
def wire(customer: str, amount: Decimal) -> str:
    _perform("wire", customer=customer, amount=str(amount))
    return f"wire_{customer}"


@vesper.effect("statement", effect_class="read")
def statement(customer: str, lines: int) -> str:
    _perform("statement", customer=customer)
    return "".join(f"{number:05} {customer} é\n" for number in range(lines))
