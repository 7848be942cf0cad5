"""Rules engines that a Python program could call instead: GoRules zen, JSONLogic (datalogic), CEL.

None of them takes a Decimal; each is given floats. What comes out of them is checked, not trusted.
"""

from __future__ import annotations

from typing import Any

from tests.bench.peers.present import needed, version
from tests.bench.workloads import Contestant, Function, with_floats

CATEGORIES = {"food": 0.05, "book": 0.0, "toy": 0.20, "tool": 0.18, "other": 0.10}


def guarded(evaluate: Function) -> Function:
    """The outputs of rules that say themselves whether their contracts hold."""

    def call(inputs: dict[str, Any]) -> Any:
        outputs = evaluate(inputs)
        if not (outputs["pre"] and outputs["post"]):
            raise ValueError("a contract is broken")
        return outputs

    return call


# -- zen ------------------------------------------------------------------------------------------


def _graph(*expressions: tuple[str, str]) -> dict[str, Any]:
    """A decision of one node of expressions; `$` in it is what stands above."""
    listed = [{"id": key, "key": key, "value": value} for key, value in expressions]
    place = {"x": 0, "y": 0}
    nodes = [
        {"id": "request", "name": "request", "type": "inputNode", "position": place},
        {
            "id": "rules",
            "name": "rules",
            "type": "expressionNode",
            "position": place,
            "content": {"expressions": listed},
        },
        {"id": "response", "name": "response", "type": "outputNode", "position": place},
    ]
    edges = [
        {"id": "first", "type": "edge", "sourceId": "request", "targetId": "rules"},
        {"id": "second", "type": "edge", "sourceId": "rules", "targetId": "response"},
    ]
    return {"nodes": nodes, "edges": edges}


_ZEN_RISK = (
    "(flagged ? 30 : 0) + (user_age_days < 30 ? 20 : 0) + (amount > 1000 ? 20 : 0) + "
    "(country in ['NG', 'RU', 'KP', 'IR'] ? 15 : 0) + (amount * 2 > balance ? 15 : 0)"
)
ZEN_PAYMENT = _graph(
    ("pre", "amount > 0 and currency in ['USD', 'EUR', 'GBP']"),
    ("fee", "amount <= 100 ? amount * 0.029 + 0.30 : (amount <= 1000 ? amount * 0.025 + 0.50 : amount * 0.019 + 1.00)"),
    ("risk", _ZEN_RISK),
    ("new_balance", "balance - amount - $.fee"),
    ("decision", "$.new_balance < 0 or $.risk >= 70 ? 'decline' : ($.risk >= 40 ? 'review' : 'approve')"),
    ("post", "$.fee >= 0 and ($.decision == 'decline' or $.new_balance >= 0)"),
)
ZEN_ORDER = _graph(
    ("rates", "{food: 0.05, book: 0, toy: 0.20, tool: 0.18, other: 0.10}"),
    ("pre", "all(items, #.qty > 0 and #.category in ['food', 'book', 'toy', 'tool', 'other'])"),
    ("pieces", "sum(map(items, #.qty))"),
    ("subtotal", "sum(map(items, #.qty * #.unit_price))"),
    ("tax", "sum(map(items, #.qty * #.unit_price * $.rates[#.category]))"),
    ("discount", "$.pieces >= 100 ? $.subtotal * 0.10 : ($.pieces >= 50 ? $.subtotal * 0.05 : 0)"),
    ("shipping", "$.subtotal - $.discount >= 500 ? 0 : 5.00 + 0.25 * $.pieces"),
    ("total", "$.subtotal - $.discount + $.tax + $.shipping"),
    ("post", "$.total == $.subtotal - $.discount + $.tax + $.shipping and $.total >= 0"),
)


def zen() -> list[Contestant]:
    library = needed("zen", "zen-engine")
    name = f"zen-engine {version('zen-engine')}"
    decisions = {"W1": ZEN_PAYMENT, "W2": ZEN_ORDER}
    engine = library.ZenEngine({"loader": {"type": "static", "content": decisions}})

    def evaluated(key: str) -> Function:
        return guarded(lambda inputs: engine.evaluate(key, inputs)["result"])

    return [Contestant(name, each, evaluated(each), with_floats, "decimal inside, float outside") for each in decisions]


# -- JSONLogic ------------------------------------------------------------------------------------


def _v(name: str) -> dict[str, Any]:
    return {"var": name}


def _if(*parts: Any) -> dict[str, Any]:
    return {"if": list(parts)}


def _payment_rule() -> dict[str, Any]:
    amount, balance = _v("amount"), _v("balance")

    def price(rate: float, base: float) -> dict[str, Any]:
        return {"+": [{"*": [amount, rate]}, base]}

    fee = _if({"<=": [amount, 100]}, price(0.029, 0.30), {"<=": [amount, 1000]}, price(0.025, 0.50), price(0.019, 1.0))
    risk = {
        "+": [
            _if(_v("flagged"), 30, 0),
            _if({"<": [_v("user_age_days"), 30]}, 20, 0),
            _if({">": [amount, 1000]}, 20, 0),
            _if({"in": [_v("country"), ["NG", "RU", "KP", "IR"]]}, 15, 0),
            _if({">": [{"*": [amount, 2]}, balance]}, 15, 0),
        ]
    }
    rest = {"-": [{"-": [balance, amount]}, fee]}
    decision = _if({"or": [{"<": [rest, 0]}, {">=": [risk, 70]}]}, "decline", {">=": [risk, 40]}, "review", "approve")
    return {
        "decision": decision,
        "fee": fee,
        "risk": risk,
        "new_balance": rest,
        "pre": {"and": [{">": [amount, 0]}, {"in": [_v("currency"), ["USD", "EUR", "GBP"]]}]},
        "post": {"and": [{">=": [fee, 0]}, {"or": [{"==": [decision, "decline"]}, {">=": [rest, 0]}]}]},
    }


def _order_rules() -> tuple[dict[str, Any], dict[str, Any]]:
    """Two, because a rule has no names for what it has computed: sums first, then what follows from them."""
    price = {"*": [_v("current.qty"), _v("current.unit_price")]}
    rates: list[Any] = []
    for category, percent in CATEGORIES.items():
        rates += [{"==": [_v("current.category"), category]}, percent]

    def summed(value: Any) -> dict[str, Any]:
        return {"reduce": [_v("items"), {"+": [_v("accumulator"), value]}, 0]}

    is_fine = {"and": [{">": [_v("qty"), 0]}, {"in": [_v("category"), list(CATEGORIES)]}]}
    sums = {
        "pre": {"all": [_v("items"), is_fine]},
        "pieces": summed(_v("current.qty")),
        "subtotal": summed(price),
        "tax": summed({"*": [price, _if(*rates, 0)]}),
    }
    subtotal, pieces = _v("subtotal"), _v("pieces")
    discount = _if({">=": [pieces, 100]}, {"*": [subtotal, 0.10]}, {">=": [pieces, 50]}, {"*": [subtotal, 0.05]}, 0)
    shipping = _if({">=": [{"-": [subtotal, discount]}, 500]}, 0, {"+": [5.0, {"*": [0.25, pieces]}]})
    total = {"+": [{"-": [subtotal, discount]}, _v("tax"), shipping]}
    rest = {
        "pre": _v("pre"),
        "subtotal": subtotal,
        "tax": _v("tax"),
        "discount": discount,
        "shipping": shipping,
        "total": total,
        "post": {">=": [total, 0]},
    }
    return sums, rest


def datalogic() -> list[Contestant]:
    library = needed("datalogic_py", "datalogic-py")
    name = f"datalogic-py {version('datalogic-py')}"
    engine = library.Engine(templating=True)
    payment = engine.compile(_payment_rule()).evaluate
    sums, rest = (engine.compile(each).evaluate for each in _order_rules())
    return [
        Contestant(name, "W1", guarded(payment), with_floats, "float"),
        Contestant(name, "W2", guarded(lambda inputs: rest(sums(inputs))), with_floats, "float"),
    ]


# -- CEL ------------------------------------------------------------------------------------------

_FEE = "(amount <= 100.0 ? amount * 0.029 + 0.30 : (amount <= 1000.0 ? amount * 0.025 + 0.50 : amount * 0.019 + 1.0))"
_RISK = (
    "((flagged ? 30 : 0) + (user_age_days < 30 ? 20 : 0) + (amount > 1000.0 ? 20 : 0) + "
    "(country in ['NG', 'RU', 'KP', 'IR'] ? 15 : 0) + (amount * 2.0 > balance ? 15 : 0))"
)
_REST = f"(balance - amount - {_FEE})"
_DECISION = f"({_REST} < 0.0 || {_RISK} >= 70 ? 'decline' : ({_RISK} >= 40 ? 'review' : 'approve'))"
CEL_PAYMENT = (
    f"{{'decision': {_DECISION}, 'fee': {_FEE}, 'risk': {_RISK}, 'new_balance': {_REST}, "
    "'pre': amount > 0.0 && currency in ['USD', 'EUR', 'GBP'], "
    f"'post': {_FEE} >= 0.0 && ({_DECISION} == 'decline' || {_REST} >= 0.0)}}"
)
"""CEL has no names for what is computed twice, so it is written twice; and no sum, so there is no W2."""


def cel() -> list[Contestant]:
    library = needed("cel", "common-expression-language")
    name = f"CEL, common-expression-language {version('common-expression-language')}"
    program = library.compile(CEL_PAYMENT)
    return [Contestant(name, "W1", guarded(program.execute), with_floats, "float")]
