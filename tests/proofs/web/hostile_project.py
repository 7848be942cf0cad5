"""A project whose texts are attacks: file names, intents, inputs, errors, provider answers, reasons and people."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from click.testing import CliRunner

import vesper
from tests.support.web import Got, Web, Wire, message
from vesper.cli.migrate.command import command as migrate
from vesper.compiler import Compiled, compile_source
from vesper.effects.events.performer import OUTBOX_CONSUMER_TABLES, OUTBOX_TABLE
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.host.waiting_runs import waiting_runs
from vesper.language.diagnostics.source import SourceFile
from vesper.migration.router.routes import Routes
from vesper.migration.stores.store import keys_of
from vesper.topics.consumers import TopicConsumers
from vesper.values.vesper_error import VesperError

MARK: Final = "vspr"
"""Begins every name that a payload would create."""
KEYS: Final = {"viewer": "viewer-" + "k" * 20, "boss": "boss-" + "k" * 20}
_WAIT_SECONDS: Final = 60.0
_OPENINGS: Final = (
    *("", '"', "'", "`", ">", '">', "'>", "-->", "]]>", "*/", "\\", "</title>", "</textarea>", "</script>", "</style>"),
    *("</svg>", "</pre>", "</code>", "</option></select>", "&quot;>", "&#34;>", "%22>", "{{", "${"),
)
_BODIES: Final = (
    "<vspr{n}>",
    "<script>vspr{n}()</script>",
    "<img src=x onerror=vspr{n}()>",
    "<svg onload=vspr{n}()><vspr/></svg>",
    " onfocus=vspr{n}() autofocus vspr{n}=",
    "<a href=javascript:vspr{n}()>x</a>",
    "<iframe srcdoc='<vspr{n}>'></iframe>",
    "<style>@import 'vspr{n}'</style>",
    "<base href=//vspr{n}.example>",
)
_FIXED: Final = (
    "javascript:vspr()",
    "data:text/html,<vspr>",
    "//vspr.example/",
    "&lt;vspr&gt;",
    "<vspr\u2028>",
    "＜vspr＞",
)
_GREETING: Final = """\
node_id: greeting_v1
type: function
intent: '{intent}'

inputs:
  name: string

outputs:
  success: {{greeting: string}}

flow:
  - operation: return
    success: {{greeting: "name + '{sign}'"}}
"""
_ORDER: Final = """\
node_id: order_v1
type: event_handler
intent: '{intent}'

inputs:
  event_id: string
  name:     string

outputs:
  success: {{reference: string, name: string}}
  error:   {{error_code: "enum[refused]", message: string}}

flow:
  - step: charge
    operation: external_api_call
    provider: bank
    method: POST
    endpoint: /v1/charges
    body: {{name: "{{name}}"}}
    effect: keyed
    key: event_id
    expect: {{id: string}}
    on_error:
      http_4xx:
        return_error: {{error_code: refused, message: "the bank refused {{name}}"}}
  - operation: return
    success: {{reference: charge.id, name: name}}

security:
  audit_level: detailed
  capabilities_required: [network.http_client.bank]
"""
_WORK: Final = {
    "question_v1": """\
node_id: question_v1
type: event_handler
intent: '{intent}'
inputs: {{event_id: string, name: string}}
outputs:
  success: {{name: string}}
flow:
  - step: asked
    operation: interrupt
    kind: checkpoint
    message: "{{name}}"
  - return: {{name: name}}
security: {{capabilities_required: [interrupts.raise.checkpoint]}}
""",
    "queued_v1": """\
node_id: queued_v1
type: event_handler
intent: '{intent}'
inputs: {{event_id: string, name: string}}
outputs:
  success: {{at: timestamp}}
queue: {{by: name}}
flow:
  - {{step: at, operation: clock}}
  - return: [at]
security: {{capabilities_required: [clock.read.system]}}
""",
    "job_v1": """\
node_id: job_v1
type: scheduled_job
intent: '{intent}'
inputs: {{scheduled_at: timestamp}}
outputs:
  success: {{at: timestamp}}
schedule: {{cron: 0 0 1 1 *}}
flow:
  - return: {{at: scheduled_at}}
""",
    "heard_v1": """\
node_id: heard_v1
type: event_handler
intent: '{intent}'
events: {{topic: news, attempts: 1}}
inputs: {{event_id: string, payload: integer}}
outputs:
  success: {{n: integer}}
flow:
  - return: {{n: payload}}
""",
}
_PUBLISH: Final = (
    "INSERT INTO vesper_outbox (id, topic, payload, event_key, execution, created_at) VALUES (?, ?, ?, ?, ?, ?)"
)
_CONFIG: Final = """\
[[grants]]
nodes = ["*"]
allow = ["*"]
[providers.bank]
base_url = "{bank}"
allow_private_addresses = true
[databases.main]
dsn = "sqlite:news.db"
[topics.news]
url = "outbox:"
database = "main"
[traces]
sample = "100 %"
[migration]
follow_cpu = "100 %"
refresh = "100ms"
[[serve.keys]]
name = "viewer"
secret = "VIEWER"
scopes = ["vesper:view"]
[[serve.keys]]
name = "boss"
secret = "BOSS"
scopes = ["vesper:view", "vesper:operate", "vesper:author"]
"""


def payloads(count: int) -> list[str]:
    """Return texts that break out of elements, attributes, comments and scripts."""
    made = [f"{opening}{body.format(n=n)}" for n, opening in enumerate(_OPENINGS) for body in _BODIES]
    step = max(1, len(made) // max(1, count - len(_FIXED)))
    return [*_FIXED, *made[::step], *made][:count]


def make_project(folder: Path, attacks: Sequence[str]) -> None:
    """Write the project, and run its nodes with these texts on both engines, one of which is wrong."""
    nodes = folder / "nodes"
    nodes.mkdir(parents=True)
    intent = " ".join(attacks[:20]).replace("'", "''").replace("\u2028", "")
    (nodes / "order_v1.vsp").write_text(_ORDER.format(intent=intent), encoding="utf-8")
    (nodes / "greeting_v1.vsp").write_text(_GREETING.format(intent=intent, sign="!"), encoding="utf-8")
    for attack in attacks[:20]:
        (nodes / f"{attack.replace('/', '')[:80]}.vsp").write_text(f"node_id: 1\nintent: {json.dumps(attack)}\n")
    numbers = {attack: n for n, attack in enumerate(attacks)}

    def answer(got: Got, wire: Wire) -> None:
        """Send the text of the request back: as a reference, as a refusal, or where no text is expected."""
        attack = json.loads(got.body)["name"]
        kind = numbers[attack] % 3
        body = json.dumps({"detail": [attack]} if kind else {"id": attack}).encode()
        wire.send(message(400 if kind == 1 else 200, body, {"Content-Type": "application/json"}))

    with Web() as bank:
        bank.on("/v1/charges", answer)
        (folder / "vesper.toml").write_text(_CONFIG.format(bank=bank.url))
        with vesper.Host.from_file(folder / "vesper.toml") as host:
            order = vesper.load(nodes / "order_v1.vsp", host=host)
            for number, attack in enumerate(attacks):
                order({"event_id": f"{attack[:60]}-{number}", "name": attack})
            _work(host, nodes, intent, attacks)
            _route(host.config, nodes / "greeting_v1.vsp", attacks)
    for node, attack in (("greeting_v1", attacks[-1].replace("\u2028", "")), ("greeting_v1", attacks[0])):
        settings = ["--config", str(folder / "vesper.toml"), "--why", attack, "--by", attack]
        done = CliRunner().invoke(migrate, ["pin", node, "shadow_direct", "--for", "1d", *settings])
        assert done.exit_code == 0, done.output


def _work(host: vesper.Host, nodes: Path, intent: str, attacks: Sequence[str]) -> None:
    """Leave runs that wait, queued runs, a schedule, and messages that their consumer gives up."""
    for name, text in _WORK.items():
        (nodes / f"{name}.vsp").write_text(text.format(intent=intent), encoding="utf-8")
    asking, queued, _, heard = (vesper.load(nodes / f"{name}.vsp", host=host) for name in _WORK)
    with closing(sqlite3.connect(nodes.parent / "news.db")) as database:
        for statement in (OUTBOX_TABLE["sqlite"], *OUTBOX_CONSUMER_TABLES):
            database.execute(statement)
        for number, attack in enumerate(attacks):
            asking.start_run({"event_id": str(number), "name": attack})
            queued.enqueue({"event_id": f"{attack[:60]}-{number}", "name": attack[:60]})
            row = (f"{attack[:60]}-{number}", "news", json.dumps(attack), attack, "", "2026-11-18T12:00:00Z")
            database.execute(_PUBLISH, row)
        database.commit()
        host.start()
        consumers = TopicConsumers(host, [heard])
        consumers.start()
        until = time.monotonic() + _WAIT_SECONDS
        while (
            len(waiting_runs(host.journal)) < len(attacks) or database.execute("SELECT 1 FROM vesper_outbox").fetchone()
        ):
            assert time.monotonic() < until, "the work does not end"
            time.sleep(0.05)
        consumers.stop(_WAIT_SECONDS)


def _route(config: object, path: Path, attacks: Sequence[str]) -> None:
    """Run a node whose direct engine is wrong, until its divergences are in the store."""
    load = DirectEngine.load
    wrong, _ = compile_source(SourceFile(str(path), path.read_text(encoding="utf-8").replace("'!'", "'?'")))
    assert wrong is not None

    def load_wrong(self: DirectEngine, compiled: Compiled) -> DirectProgram:
        return load(self, wrong if compiled.node.node_id == wrong.node.node_id else compiled)

    DirectEngine.load = load_wrong  # type: ignore[method-assign]  # the planted fault
    routes = Routes(config)  # type: ignore[arg-type]  # the configuration of a host
    try:
        node = vesper.load(path, engine="auto", routes=routes)
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            for attack in attacks:
                try:
                    node({"name": attack})
                except VesperError:
                    continue
            store = routes.migration.store
            if any(store.divergences(key) for key in keys_of(store)):
                return
            assert time.monotonic() < until, "no divergence was found"
            time.sleep(0.05)
    finally:
        routes.close()
        DirectEngine.load = load  # type: ignore[method-assign]
