"""W1 with FastAPI and pydantic, on uvicorn."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict, Field

from tests.bench.peers.by_hand import payment_decision


class Payment(BaseModel):
    model_config = ConfigDict(extra="forbid")

    amount: Decimal
    balance: Decimal
    currency: Literal["USD", "EUR", "GBP"]
    country: Annotated[str, Field(min_length=2, max_length=2)]
    user_age_days: Annotated[int, Field(ge=0)]
    flagged: bool = False


class Decision(BaseModel):
    decision: str
    fee: Decimal
    risk: int
    new_balance: Decimal


app = FastAPI()


@app.post("/decide", response_model=Decision)
async def decide(payment: Payment) -> Any:
    try:
        return payment_decision(payment.__dict__)
    except ValueError as problem:
        raise HTTPException(422, str(problem)) from None
