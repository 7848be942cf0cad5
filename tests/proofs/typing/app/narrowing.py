"""`if outcome.ok:` narrows for mypy; pyright narrows by `if outcome:`, which application.py shows."""

from __future__ import annotations

from decimal import Decimal
from typing import assert_type

import vesper

outcome = vesper.load("payment_decision")('{"amount": 1}')
if outcome.ok:
    assert_type(outcome.value["fee"], Decimal)
else:
    assert_type(outcome.error, vesper.ErrorInfo)
general = vesper.Node.__call__(vesper.load("payment_decision"))
if not general.ok:
    assert_type(general.error.kind, str)
