"""The integrations with their libraries, as a type checker sees them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, assert_type

from fastapi import APIRouter, FastAPI

import vesper
from vesper.integrations.fastapi import ExactRoute, NodeResponse, add_nodes
from vesper.integrations.frames import Frame
from vesper.integrations.pydantic import NodeModel, models

node = vesper.load("payment_decision")
Payment = models(node)
given = Payment.Input.model_validate_json('{"amount": 1}')
assert_type(given.amount, Decimal)
built = Payment.Input(amount=Decimal(1), balance=Decimal(1), currency="EUR", country="DE", user_age_days=1)
base: NodeModel = built
assert_type(Payment.Output(**node(built).unwrap()).fee, Decimal)
router = APIRouter(route_class=ExactRoute)


@router.post("/pay")
async def pay(payment: dict[str, Any]) -> NodeResponse:
    return NodeResponse(await node.arun(Payment.Input.model_validate(payment)), decimals="number")


app = FastAPI()
add_nodes(app, node, prefix="/rules", decimals="text")
app.include_router(router)
assert_type(Frame([1]).run(node, keep=["id"]), list[int])
