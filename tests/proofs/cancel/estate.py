"""The nodes and the configuration of `make proof-cancel`: an agent of its own for each trial."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CAUSES = ("close", "client", "budget", "timeout", "parent")
"""The caller closes the iterator, the client of `vesper serve` goes, a budget or the time of the caller is used up, the
task of a calling agent is cancelled."""
MOMENTS = ("before", "between", "tool", "retry", "limiter")
"""Before the first chunk, between two, in a tool, while a retry waits, while a limit holds the question back."""
KEY = "key-of-a-model-0123456789"
BACKOFF_MS = 1500


@dataclass(frozen=True)
class Trial:
    number: int
    cause: str
    moment: str

    @property
    def name(self) -> str:
        """The text that names the trial in every request."""
        moment = "broken" if (self.cause, self.moment) == ("budget", "retry") else self.moment
        return f"trial-{self.number}-{moment}"

    @property
    def node(self) -> str:
        """The node that is called."""
        return f"{'desk' if self.cause == 'parent' else 'teller'}_{self.number}_v1"

    @property
    def tools(self) -> str:
        if self.moment == "limiter":
            return "note"
        if self.moment != "tool":
            return ""
        return {"budget": "helper", "parent": "look"}.get(self.cause, "change")


def trials(count: int) -> list[Trial]:
    pairs = [(cause, moment) for moment in MOMENTS for cause in CAUSES]
    return [Trial(number, *pairs[number % len(pairs)]) for number in range(count)]


def _agent(node_id: str, tools: str, more: str = "") -> str:
    return f"""\
node_id: {node_id}
type: agent
intent: Answer a question
inputs: {{question: string}}
outputs:
  success: {{reply: string}}
agent:
  model: main
  messages: "{{question}}"
  tools: [{tools}]
  timeout: 1m
  retry: {{attempts: 3, on: [rate_limit, timeout, unavailable], backoff: {{base: {BACKOFF_MS}ms}}}}
  {more}
security:
  capabilities_required: [models.call.main, network.http_client.shop]
"""


def _tool(name: str, steps: tuple[tuple[str, str, str], ...]) -> str:
    """Return a tool that calls the shop: `steps` have a name, a method and more of the step."""
    flow = "".join(
        f"""\
  - step: {step}
    operation: external_api_call
    provider: shop
    method: {method}
    endpoint: /{step}/{{event_id}}
    expect: {{id: string}}
{more}"""
        for step, method, more in steps
    )
    return f"""\
node_id: {name}_v1
type: event_handler
intent: Look an order up and pay it
inputs: {{event_id: string}}
outputs:
  success: {{found: string}}
flow:
{flow}  - return: {{found: slow.id}}
security:
  capabilities_required: [network.http_client.shop]
"""


_KEYED, _UNSAFE = "    effect: keyed\n    key: event_id\n", "    effect: unsafe\n    body: {}\n"
TOOLS = {
    "look": _tool("look", (("slow", "GET", ""), ("pay", "POST", _UNSAFE))),
    "change": _tool("change", (("mark", "POST", f"{_KEYED}    body: {{}}\n"), ("slow", "GET", ""),
                               ("pay", "POST", _UNSAFE))),
    "note": """\
node_id: note_v1
type: function
intent: Repeat a word
inputs: {event_id: string}
outputs:
  success: {found: string}
flow:
  - return: {found: event_id}
""",
    "helper": _agent("helper_v1", "").replace(", network.http_client.shop", ""),
}  # fmt: skip


def write_estate(folder: Path, port: int, some: list[Trial]) -> Path:
    """Write the nodes of trials and the configuration; return the path of the latter."""
    nodes = folder / "nodes"
    nodes.mkdir(parents=True, exist_ok=True)
    for name, text in TOOLS.items():
        (nodes / f"{name}_v1.vsp").write_text(text, encoding="utf-8")
    for each in some:
        held_back = "rate_limit: {limit: 1, per: 2s}" if each.moment == "limiter" else ""
        teller = _agent(f"teller_{each.number}_v1", each.tools, held_back)
        if each.tools not in ("look", "change"):
            teller = teller.replace(", network.http_client.shop", "")
        (nodes / f"teller_{each.number}_v1.vsp").write_text(teller, encoding="utf-8")
        if each.cause == "parent":
            desk = _agent(each.node, f"teller_{each.number}")
            if each.tools != "look":
                desk = desk.replace(", network.http_client.shop", "")
            (nodes / f"{each.node}.vsp").write_text(desk, encoding="utf-8")
    path = folder / "vesper.toml"
    path.write_text(
        f"""\
[[grants]]
nodes = ["*"]
allow = ["*"]

[journal]
dsn = "sqlite:{folder / "journal.db"}"

[recovery]
enabled = false

[models.main]
api = "openai"
model = "m"
base_url = "http://127.0.0.1:{port}/v1"
key_secret = "model_key"
allow_private_addresses = true
prices = {{input = "1", output = "2"}}
max_connections = 200

[providers.shop]
base_url = "http://127.0.0.1:{port}"
allow_private_addresses = true
max_connections = 200

[budgets.everything]
usd = "1000"

[serve]
expose = ["teller_*"]
""",
        encoding="utf-8",
    )
    return path
