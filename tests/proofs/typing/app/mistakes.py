"""Mistakes that a type checker reports: each on the line with its comment, and on no other."""

import vesper

node = vesper.load("payment_decision")
outcome = node('{"amount": 1}')
vesper.load("payment_decisions")  # MISTAKE: there is no such node
vesper.load("payment_decision", engine="turbo")  # MISTAKE: there is no such engine
vesper.load("payment_decision", isolation="jail")  # MISTAKE: there is no such isolation
vesper.load(5)  # MISTAKE: no name
node(amount=9.99, balance=100, currency="USD", country="DE", user_age_days=400)  # MISTAKE: a float is not exact
node(amount="9.99", balance=100, currency="USX", country="DE", user_age_days=400)  # MISTAKE: no such currency
node(amount="9.99", balance=100, currency="USD", country="DE")  # MISTAKE: one is missing
node(amount="9", balance=1, currency="USD", country="DE", user_age_days=4, flaged=True)  # MISTAKE: misspelt input
node.call({"amount": "9.99"})  # MISTAKE: many are missing
node.map([{"amount": "9.99"}])  # MISTAKE: many are missing
node.map([5], outcomes=True)  # MISTAKE: no inputs
print(outcome["fees"])  # MISTAKE: misspelt output
print(outcome.fees)  # MISTAKE: misspelt output
print(outcome.unwrap()["fees"])  # MISTAKE: misspelt output
print(outcome.value["fee"])  # MISTAKE: may be None
print(outcome.error.code)  # MISTAKE: may be None
if outcome:
    print(outcome.error.code)  # MISTAKE: is None
text: str = outcome["fee"]  # MISTAKE: a decimal is no text
node.Input(amount="1", balance=1, currency="USD", country="DE", user_age_days=4)  # MISTAKE: texts are no decimals
print(node.as_output(outcome).fees)  # MISTAKE: misspelt output
vesper.load("basket")(lines=[{"sku": "a"}], kind="trade", rates={}, days={})  # MISTAKE: fields are missing
vesper.load("basket").Input.Line(sku="a")  # MISTAKE: fields are missing
vesper.load("stamp")(now=5)  # MISTAKE: no time
vesper.load("stamp").call({})  # MISTAKE: no time
vesper.load("greet")(event=1)  # MISTAKE: no such input of a node with effects
vesper.Limits(fuels=1)  # MISTAKE: no such limit
node.run_batch([], decimals="exact")  # MISTAKE: no such form


async def wait() -> None:
    print((await node.arun(amount=1)).fee)  # MISTAKE: many are missing
