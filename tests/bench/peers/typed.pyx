# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The workloads as somebody writes them who turns to Cython in earnest: whole cents in 64 bits, and W3 in C types.

Nothing notices an overflow."""

cdef frozenset CURRENCIES = frozenset(("USD", "EUR", "GBP"))
cdef frozenset HIGH_RISK = frozenset(("NG", "RU", "KP", "IR"))
cdef dict PERCENT = {"food": 5, "book": 0, "toy": 20, "tool": 18, "other": 10}


def payment_decision(dict inputs):
    cdef long long amount = inputs["amount"], balance = inputs["balance"], fee, new_balance
    cdef long long age = inputs["user_age_days"]
    cdef int risk = 0
    if amount <= 0:
        raise ValueError("amount > 0")
    if inputs["currency"] not in CURRENCIES:
        raise ValueError("currency")
    if amount <= 100_00:
        fee = amount * 29 + 30_000
    elif amount <= 1000_00:
        fee = amount * 25 + 50_000
    else:
        fee = amount * 19 + 100_000
    if inputs["flagged"]:
        risk += 30
    if age < 30:
        risk += 20
    if amount > 1000_00:
        risk += 20
    if inputs["country"] in HIGH_RISK:
        risk += 15
    if amount * 2 > balance:
        risk += 15
    new_balance = (balance - amount) * 1000 - fee
    decision = "decline" if new_balance < 0 or risk >= 70 else "review" if risk >= 40 else "approve"
    if fee < 0:
        raise ValueError("fee >= 0")
    if decision != "decline" and new_balance < 0:
        raise ValueError("new_balance >= 0 unless declined")
    return {"decision": decision, "fee": fee, "risk": risk, "new_balance": new_balance}


def order_pricing(dict inputs):
    cdef long long subtotal = 0, tax = 0, pieces = 0, quantity, price, discount, shipping, total, rate
    cdef dict item
    for item in <list>inputs["items"]:
        quantity = item["qty"]
        if quantity <= 0:
            raise ValueError("qty > 0")
        rate = PERCENT[item["category"]]
        price = quantity * <long long>item["unit_price"]
        subtotal += price * 100
        tax += price * rate
        pieces += quantity
    discount = subtotal // 10 if pieces >= 100 else subtotal // 20 if pieces >= 50 else 0
    shipping = 0 if subtotal - discount >= 500_0000 else 5_0000 + 2500 * pieces
    total = subtotal - discount + tax + shipping
    if total < 0:
        raise ValueError("total >= 0")
    return {"subtotal": subtotal, "tax": tax, "discount": discount, "shipping": shipping, "total": total}


def numeric_loop(dict inputs):
    cdef long long state = inputs["seed"], rounds = inputs["n"], hits = 0, turn
    cdef double score = 0, x, y
    if rounds < 0:
        raise ValueError("n >= 0")
    for turn in range(rounds):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        x = state / 2147483648.0
        y = ((0.5 * x - 1.25) * x + 0.75) * x + 0.1
        if y > 0.2:
            score += y
            hits += 1
        else:
            score -= 0.5 * x
    if not 0 <= hits <= rounds:
        raise ValueError("hits")
    return {"score": score, "hits": hits, "state": state}
