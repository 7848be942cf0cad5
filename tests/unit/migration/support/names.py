"""Projects with a name that has a lead and a candidate: decisions without effects, charges of a loopback provider."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from vesper.config.settings import read_config
from vesper.migration.candidates.overview import NameOverview, read_name
from vesper.migration.router.routes import Routes

NAME = "fee_of"
DECISION = """\
node_id: fee_of_v{version}
type: function
intent: Compute the fee of a payment

inputs:
  amount: decimal
{inputs}
outputs:
  success:
    fee: decimal
{outputs}
flow:
  - step: fee
    operation: decision_table
    rows:
      - {{when: amount <= 100, then: 1.50}}
      - {{when: amount <= 1000, then: {middle}}}
      - {{otherwise: 1.00 / (amount - 5000)}}

  - operation: return
    success: {returned}
"""
CHARGE = """\
node_id: charge_v{version}
type: event_handler
intent: Charge a purchase at a provider

inputs:
  event_id: string
  card:
    type: string

outputs:
  success:
    charge: string
    steps: integer

types:
  Answer:
    fields: {{id: string}}

flow:
  - step: charge
    operation: external_api_call
    provider: outside
    method: POST
    endpoint: /charge
    body: {{event: "{{event_id}}"}}
    effect: keyed
    key: event_id
    expect: Answer
{more}
  - operation: return
    success: {{charge: charge.id, steps: {steps}}}

security:
  capabilities_required:
    - network.http_client.outside
  sensitive_data: [card]
"""
NOTICE = """\
  - step: notice
    operation: external_api_call
    provider: outside
    method: POST
    endpoint: /notice
    body: {event: "{event_id}"}
    effect: unsafe
    expect: Answer
"""


def decision(version: int, middle: str = "2.00", inputs: str = "", outputs: str = "", returned: str = "[fee]") -> str:
    return DECISION.format(version=version, middle=middle, inputs=inputs, outputs=outputs, returned=returned)


def charge(version: int, more: str = "", steps: int = 1) -> str:
    return CHARGE.format(version=version, more=more, steps=steps)


class Project:
    """A folder with both versions of a name and its settings."""

    def __init__(self, folder: Path, lead: str, candidate: str, settings: str = "", name: str = NAME) -> None:
        self.folder, self.name = folder, name
        self.nodes = folder / "nodes"
        self.nodes.mkdir(exist_ok=True)
        (self.nodes / f"{name}_v1.vsp").write_text(lead, encoding="utf-8")
        (self.nodes / f"{name}_v2.vsp").write_text(candidate, encoding="utf-8")
        pair = f'[versions.{name}]\nlead = "{name}_v1"\ncandidate = "{name}_v2"\n'
        rest = '[migration]\nrefresh = "50ms"\nfollow_cpu = "6400 %"\n'
        (folder / "vesper.toml").write_text(f"{pair}{settings}\n{rest}", encoding="utf-8")

    @property
    def config(self) -> Any:
        return read_config(self.folder / "vesper.toml")

    def routes(self) -> Routes:
        return Routes(self.config)

    def found(self, routes: Routes, with_examples: int = 5) -> NameOverview:
        """Return what the store has after everything was followed and sent."""
        settle(routes)
        return read_name(routes.migration.store, self.name, self.config.versions[self.name], None, with_examples)


def settle(routes: Routes) -> None:
    assert routes.followers.drain(10)
    routes._close_candidates()


def amounts(*values: int) -> list[dict[str, Any]]:
    return [{"amount": Decimal(each)} for each in values]


Compile = Callable[[str], Any]
