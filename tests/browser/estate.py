"""A project as an operator meets it: nodes in all five modes, a divergence, runs in doubt, work that waits, failures.

Everything comes from real runs on both engines; only the thresholds are scaled, as in `vesper demo`, and the times of
the engines do not count, so that the modes are the same on every machine.

    python -m tests.browser.estate FOLDER [URL of a running Bank]
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import vesper
from tests.support.dying import run_dying
from tests.support.work.estate import SETTINGS, begin_work, write_nodes
from vesper.cli.demo.provider import Provider
from vesper.cli.demo.scaled import scale_thresholds
from vesper.compiler import Compiled, compile_file, compile_source
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.language.diagnostics.source import SourceFile
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import Settings
from vesper.migration.router.routes import Routes
from vesper.migration.statistics import latency
from vesper.migration.stores.overview import read_overview, running_mode
from vesper.values.vesper_error import VesperError
from vesper.verify.inputs.generator import InputGenerator

ROOT: Final = Path(__file__).parents[2]
FAULTY: Final = "payment_decision_v1"
"""The node whose direct engine becomes wrong."""
MODES: Final = {
    "access_decision_v1": Mode.PYTHON_ONLY,
    "iban_check_v1": Mode.SHADOW_DIRECT,
    "shipping_v1": Mode.CANARY_DIRECT,
    "fraud_score_v1": Mode.DUAL_VERIFY,
    "check_digits_v1": Mode.DIRECT_ONLY,
    FAULTY: Mode.DIRECT_ONLY,
}
"""Highest modes of the nodes without effects; each is reached by traffic."""
TRANSFER, HANDLER, LIMIT = "bank_transfer_v1", "card_payment_v1", "credit_limit_v1"
SECRET_INCOME: Final = "98431.07"
"""A sensitive input, which no page may show."""
CANDIDATE: Final = "parcel_price"
"""A name whose candidate is dearer for bulky parcels."""
_RIGHT, _WRONG = "amount * 0.025 + 0.50", "amount * 0.026 + 0.50"
_WAIT_SECONDS = 120.0
_NEVER_SLOWER_NS: Final = 10**12
_TRANSFER = """\
node_id: bank_transfer_v1
type: event_handler
intent: Send money to an account; the bank has no keys, so that a crash leaves a transfer in doubt

inputs:
  event_id: string
  account:  {type: string, constraints: [non_empty]}
  amount:   {type: decimal, constraints: [positive]}

outputs:
  success: {reference: string, sent: decimal}
  error:   {error_code: "enum[bank_refused]", message: string}

flow:
  - step: transfer
    operation: external_api_call
    provider: bank
    method: POST
    endpoint: /v1/transfers
    body: {account: "{account}", amount: "{amount}"}
    effect: unsafe
    timeout: 5s
    expect: {id: string}
    on_error:
      http_4xx:
        return_error: {error_code: bank_refused, message: "the bank refused {account}"}

  - operation: return
    success: {reference: transfer.id, sent: amount}

security:
  audit_level: detailed
  capabilities_required: [network.http_client.bank]
"""
_HANDLER = """\
node_id: card_payment_v1
type: event_handler
intent: Charge a card once, under the key of the order

inputs:
  event_id: string
  customer: {type: string, constraints: [non_empty]}
  amount:   {type: decimal, constraints: [positive, {max: 50000}]}

outputs:
  success: {charge: string, amount_charged: decimal, status: string}
  error:   {error_code: "enum[provider_unavailable]", message: string}

contracts:
  preconditions:
    - scale(amount) <= 2

flow:
  - step: charge
    operation: external_api_call
    provider: bank
    method: POST
    endpoint: /v1/charges
    body: {amount: "{to_integer(amount * 100)}", customer: "{customer}"}
    effect: keyed
    key: event_id
    timeout: 5s
    retry: {attempts: 3, on: [timeout, unavailable, http_5xx], backoff: {base: 10ms, factor: 2, max: 50ms}}
    expect: {id: string, status: string}
    on_error:
      timeout, unavailable, http_5xx:
        return_error: {error_code: provider_unavailable, message: "the provider did not answer"}

  - operation: return
    success: {charge: charge.id, amount_charged: amount, status: charge.status}

security:
  audit_level: basic
  capabilities_required: [network.http_client.bank]
"""
_LIMIT = """\
node_id: credit_limit_v1
type: event_handler
intent: Derive a credit limit from an income, which stays secret

inputs:
  event_id: string
  income:   {type: decimal, constraints: [positive]}

outputs:
  success: {limit: decimal, checked_at: timestamp}

flow:
  - {step: checked_at, operation: clock}
  - operation: return
    success: {limit: income * 2, checked_at: checked_at}

security:
  audit_level: detailed
  sensitive_data: [income]
  capabilities_required: [clock.read.system]
"""
_CONFIG = """\
[[grants]]
nodes = ["*"]
allow = ["*"]

[providers.bank]
base_url = "{provider}"
allow_private_addresses = true

[journal]
dsn = "sqlite:journal.db"

[traces]
sample = "2 %"

[serve]
expose = ["*"]

[migration]
sample = "20 %"
follow_cpu = "100 %"
refresh = "100ms"

[versions.parcel_price]
lead = "parcel_price_v1"
candidate = "parcel_price_v2"

"""


class Bank(Provider):
    """A provider that answers at once, and is unavailable to customers and keys that begin with `down`."""

    def _charge(self, key: str | None) -> tuple[int, dict[str, str]]:
        if key is not None and key.startswith("down"):
            return 503, {"error": "maintenance"}
        with self._lock:
            self.charges_made += 1
            return 200, {"id": f"ch_{self.charges_made}", "status": "succeeded"}


def make_estate(folder: Path, provider: str) -> None:
    """Write the project and run its nodes until each is in its mode. `provider` is the URL of a running `Bank`."""
    scale_thresholds()
    latency.SLOWER_BY_NS = _NEVER_SLOWER_NS
    _write(folder, provider)
    config = vesper.Host.from_file(folder / "vesper.toml").config
    routes = Routes(config)
    try:
        for node_id, mode in MODES.items():
            _run_until(routes, folder, node_id, mode)
        _follow(routes, folder)
    finally:
        routes.close()
    with planted_fault():
        faulty = Routes(config)
        try:
            _run_until(faulty, folder, FAULTY, Mode.SHADOW_DIRECT)
        finally:
            faulty.close()
    begin_work(folder)  # first: its Host would recover the runs that die
    _run_effects(folder)
    _verify(folder)


def _write(folder: Path, provider: str) -> None:
    nodes = folder / "nodes"
    nodes.mkdir(parents=True)
    for node_id in MODES:
        found = next((ROOT / "nodes").rglob(f"{node_id}.vsp"))
        (nodes / found.name).write_bytes(found.read_bytes())
    for node_id, text in ((TRANSFER, _TRANSFER), (HANDLER, _HANDLER), (LIMIT, _LIMIT)):
        (nodes / f"{node_id}.vsp").write_text(text, encoding="utf-8")
    _write_versions(nodes)
    write_nodes(folder)
    held = "".join(
        f'[migration.nodes.{node_id}]\nmax_mode = "{mode.value}"\n'
        for node_id, mode in MODES.items()
        if mode is not Mode.DIRECT_ONLY
    )
    (folder / "vesper.toml").write_text(_CONFIG.format(provider=provider) + held + SETTINGS, encoding="utf-8")


def _write_versions(nodes: Path) -> None:
    text = next((ROOT / "nodes").rglob("shipping_v1.vsp")).read_text(encoding="utf-8").split("\ntesting:")[0]
    for version, fee in ((1, "15.00"), (2, "18.00")):
        own = text.replace("shipping_v1", f"{CANDIDATE}_v{version}").replace("THEN 15.00", f"THEN {fee}")
        (nodes / f"{CANDIDATE}_v{version}.vsp").write_text(own, encoding="utf-8")


def _follow(routes: Routes, folder: Path) -> None:
    """Run a name whose candidate follows; some of its outcomes are changed."""
    with vesper.Host.from_file(folder / "vesper.toml") as host:
        node = vesper.load(CANDIDATE, nodes=folder / "nodes", engine="auto", host=host, routes=routes)
        drawn = InputGenerator(_compile(folder / "nodes" / f"{CANDIDATE}_v1.vsp").node, seed=7)
        for _ in range(60):
            try:
                node(drawn.draw())
            except VesperError:
                continue  # inputs that break a precondition are traffic too


def _run_until(routes: Routes, folder: Path, node_id: str, wanted: Mode) -> None:
    """Send traffic until the node runs in a mode. Raises `RuntimeError` after two minutes."""
    path = folder / "nodes" / f"{node_id}.vsp"
    node = vesper.load(path, engine="auto", routes=routes)
    drawn = InputGenerator(_compile(path).node, seed=7)
    inputs = [drawn.draw() for _ in range(400)]
    until = time.monotonic() + _WAIT_SECONDS
    for number, given in enumerate(_endless(inputs, drawn)):
        try:
            node(given)
        except VesperError:
            continue  # inputs that break a precondition are traffic too
        if number % 50 == 49:
            if _mode(routes, node_id) is wanted and (wanted is not Mode.PYTHON_ONLY or number > 400):
                return
            if time.monotonic() > until:
                raise RuntimeError(f"{node_id} is in {_mode(routes, node_id)}, not in {wanted}")
            time.sleep(0.02)


def _endless(inputs: list[dict[str, object]], drawn: InputGenerator) -> Iterator[dict[str, object]]:
    yield from inputs
    while True:
        yield drawn.draw()


def _mode(routes: Routes, node_id: str) -> Mode | None:
    found = read_overview(routes.migration.store, Settings(), node=node_id).nodes
    highest = routes.settings.of(node_id).max_mode
    if not found or found[0].state is None:
        return None
    return running_mode(found[0].state, None if highest is None else Mode(highest))


@contextmanager
def planted_fault() -> Iterator[None]:
    """Let the direct engine of this process compute a wrong fee."""
    load = DirectEngine.load
    text = next((ROOT / "nodes").rglob(f"{FAULTY}.vsp")).read_text(encoding="utf-8")
    assert text.count(_RIGHT) == 1
    faulty, _ = compile_source(SourceFile(f"{FAULTY}.vsp", text.replace(_RIGHT, _WRONG)))
    assert faulty is not None

    def load_faulty(self: DirectEngine, compiled: Compiled) -> DirectProgram:
        return load(self, faulty if compiled.node.node_id == FAULTY else compiled)

    DirectEngine.load = load_faulty  # type: ignore[method-assign]  # the planted fault
    try:
        yield
    finally:
        DirectEngine.load = load  # type: ignore[method-assign]


def _run_effects(folder: Path) -> None:
    """Run nodes with effects: successes, failures after retries, and two that die in the middle."""
    config = folder / "vesper.toml"
    with vesper.Host.from_file(config) as host:
        handler = vesper.load(folder / "nodes" / f"{HANDLER}.vsp", engine="auto", host=host)
        for number in range(12):
            name = f"down-{number}" if number % 4 == 3 else f"order-{number}"
            handler({"event_id": name, "customer": "ann", "amount": f"{number + 1}.50"})
        limit = vesper.load(folder / "nodes" / f"{LIMIT}.vsp", host=host)
        for number in range(3):
            limit({"event_id": f"limit-{number}", "income": SECRET_INCOME})
        transfer = vesper.load(folder / "nodes" / f"{TRANSFER}.vsp", host=host)
        for number in range(3):
            transfer({"event_id": f"transfer-{number}", "account": f"DE0{number}", "amount": "250.00"})
    for number in range(2):
        given = {"event_id": f"lost-{number}", "account": f"FR0{number}", "amount": f"{900 + number}.00"}
        run_dying(config, folder / "nodes" / f"{TRANSFER}.vsp", "python", "effect.performed", **given)
    with vesper.Host.from_file(config) as host:
        host.recover()


def _verify(folder: Path) -> None:
    """Let `vesper verify` record two runs."""
    for node_id in ("shipping_v1", "access_decision_v1"):
        command = [sys.executable, "-m", "vesper", "verify", node_id, "--max-examples", "40"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=120)


def _compile(path: Path) -> Compiled:
    compiled, diagnostics = compile_file(path)
    assert compiled is not None, diagnostics
    return compiled


def main() -> None:
    folder = Path(sys.argv[1])
    with Bank() as bank:
        make_estate(folder, sys.argv[2] if len(sys.argv) > 2 else bank.url)
    print(f"vesper dashboard --config {os.path.relpath(folder / 'vesper.toml')}")


if __name__ == "__main__":
    main()
