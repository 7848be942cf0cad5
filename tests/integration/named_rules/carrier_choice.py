"""Choose a carrier for a parcel; every other field of the order passes through."""

from decimal import Decimal

CARRIERS = [
    {"name": "bike", "zones": {"city"}, "max_kg": Decimal(5), "base": Decimal("3.50"), "per_kg": Decimal("0.80")},
    {
        "name": "van",
        "zones": {"city", "land"},
        "max_kg": Decimal(40),
        "base": Decimal("6.00"),
        "per_kg": Decimal("0.25"),
    },
    {
        "name": "post",
        "zones": {"city", "land", "world"},
        "max_kg": Decimal(20),
        "base": Decimal("4.90"),
        "per_kg": Decimal("0.60"),
    },
]


def carrier_choice(order: dict) -> dict:
    fitting = [
        carrier for carrier in CARRIERS if order["zone"] in carrier["zones"] and order["weight_kg"] <= carrier["max_kg"]
    ]
    if not fitting:
        raise ValueError("no_carrier")
    offers = [(each["base"] + each["per_kg"] * order["weight_kg"], each["name"]) for each in fitting]
    price, name = min(offers)
    return {"order": order | {"carrier": name, "shipping": round(price, 2)}}
