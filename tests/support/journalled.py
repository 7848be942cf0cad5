"""Runs in a real journal, made through the Host, some of them abandoned by a dead process."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from click.testing import CliRunner, Result

from vesper.cli.main import vesper
from vesper.compiler import Compiled, compile_source
from vesper.config.settings import Config, read_config
from vesper.effects.custom.performer import effect, registered, unregister
from vesper.effects.performer import EffectFailed
from vesper.engines.engine import Program
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.journal.journal import Journal, open_journal
from vesper.journal.owner import this_owner
from vesper.language.diagnostics.source import SourceFile

_NODE = """\
node_id: {node_id}
type: event_handler
intent: Charge a customer once
inputs:
  event_id: string
  customer: string
  amount: decimal
outputs:
  success: {{receipt: string, fee: decimal, known: integer}}
  error:
    error_code: enum[declined]
    message: string
types:
  Receipt: {{fields: {{id: string, fee: decimal, note: optional<string>}}}}
flow:
  - step: known
    operation: custom
    name: known
    request: {{customer: customer}}
    returns: integer
    effect: read
  - step: charge
    operation: custom
    name: {effect_class}_charge
    effect: {effect_class}
    request: {{customer: customer, amount: amount}}
    returns: {receipt}
{policy}    on_error:
      effect_failed:
        return_error: {{error_code: declined, message: "no"}}
  - operation: return
    success: {{receipt: charge.id, fee: charge.fee, known: known}}
security:
  capabilities_required: [effect.call.known, effect.call.{effect_class}_charge]
{security}"""


def node_text(
    node_id: str = "charge_v1", effect_class: str = "unsafe", policy: str = "", sensitive: bool = False, audit: str = ""
) -> str:
    """Return a node that reads, charges and returns. Event and receipt repeat the customer."""
    security = "  sensitive_data: [event_id, customer]\n" if sensitive else ""
    receipt = "{type: Receipt, sensitive: [id]}" if sensitive else "Receipt"
    security += f"  audit_level: {audit}\n" if audit else ""
    policy = f"    {policy}\n" if policy else ""
    return _NODE.format(node_id=node_id, effect_class=effect_class, policy=policy, security=security, receipt=receipt)


@lru_cache(maxsize=32)
def compiled_node(text: str) -> Compiled:
    found, bag = compile_source(SourceFile("node.vsp", text))
    assert found is not None, [each.headline for each in bag.sorted()]
    return found


@lru_cache(maxsize=32)
def _loaded(text: str, engine: str) -> Program:
    return ENGINES[engine].load(compiled_node(text))


def dead_owner() -> str:
    """Return the name of an ended process of this machine."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    host, _, _, place = this_owner().rsplit(":", 3)
    return f"{host}:{ended.pid}:1:{place}"


class Died(KeyboardInterrupt):
    """An exception that kills the process: effects do not turn it into a failure."""


class Place:
    """A folder with a `vesper.toml`, a journal and the effects `known` and `CLASS_charge`."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder
        self.dsn = dsn
        self.charged: list[str] = []
        """Customers that were charged, in order."""
        self.dies = False
        """True if the process dies before charging."""
        self.failures: list[str] = []
        """Failure codes of the next charges."""
        self.settings()

    def settings(self, journal: str = "") -> None:
        text = '[[grants]]\nnodes = ["*"]\nallow = ["effect.call.*"]\n\n'
        text += f'[journal]\ndsn = "{self.dsn}"\n{journal}'
        (self.folder / "vesper.toml").write_text(text, encoding="utf-8")

    @property
    def config(self) -> Config:
        return read_config(self.folder / "vesper.toml")

    @contextmanager
    def journal(self, owner: str | None = None) -> Iterator[Journal]:
        found = open_journal(self.config.dsn(self.config.journal.dsn), owner=owner)
        try:
            yield found
        finally:
            found.close()

    def run(self, text: str, customer: str = "ann", amount: str = "10.00", engine: str = "python") -> str:
        """Run to the end and return the id."""
        with Host(self.config) as host:
            return self._run(host, text, customer, amount, engine)

    def left(self, text: str, customer: str = "bob", amount: str = "7.50", engine: str = "python") -> str:
        """Return the id of a run whose process died between its intent and the charge."""
        self.dies = True
        try:
            with self.journal(dead_owner()) as journal, Host(self.config, journal=journal) as host:
                try:
                    self._run(host, text, customer, amount, engine)
                except Died:
                    return next(iter(sorted(journal.executions(), reverse=True)))
        finally:
            self.dies = False
        raise AssertionError("the process did not die")

    def in_doubt(self, text: str, customer: str = "bob", amount: str = "7.50") -> str:
        """Return the id of an abandoned run that is in doubt."""
        execution = self.left(text, customer, amount)
        with Host(self.config) as host:
            assert host.resume(execution).outcome is None
        return execution

    def _run(self, host: Host, text: str, customer: str, amount: str, engine: str) -> str:
        compiled = compiled_node(text)
        prepared = host.prepare(compiled, _loaded(text, engine), engine)
        inputs = {"event_id": f"event {customer}", "customer": customer, "amount": Decimal(amount)}
        return host.run(prepared, inputs, datetime.now(UTC)).execution

    def charge(self, customer: str, amount: Decimal) -> dict[str, object]:
        if self.dies:
            raise Died
        if self.failures:
            raise EffectFailed(self.failures.pop(0), "not now")
        self.charged.append(customer)
        return {"id": f"ch_{customer}", "fee": amount / 100}


@contextmanager
def a_place(folder: Path, dsn: str) -> Iterator[Place]:
    """Yield the place with its effects registered."""
    place = Place(folder, dsn)
    before = set(registered())
    effect("known", effect_class="read")(_known)
    for effect_class in ("unsafe", "keyed", "txn"):
        effect(f"{effect_class}_charge", effect_class=effect_class)(_charging(place))
    try:
        yield place
    finally:
        for name in set(registered()) - before:
            unregister(name)


def _known(customer: str) -> int:
    return len(customer)


def _charging(place: Place) -> Callable[..., object]:
    def charge(customer: str, amount: Decimal) -> object:
        return place.charge(customer, amount)

    return charge


def invoke(*arguments: str, answer: str | None = None) -> Result:
    """Run `vesper …` in this process; an unexpected exception fails the test."""
    result = CliRunner().invoke(vesper, list(arguments), input=answer)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
