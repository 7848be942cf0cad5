"""Write the compatibility fixtures of the installed version.

    python tests/compatibility/write_fixtures.py tests/compatibility/v0_2 tests/compatibility/v0_3

Run this on a released version, unmodified, before any of its formats changes. The first folder provides the inputs
(nodes, settings, effects), which are copied to the second; then every store is written there by real processes: some of
them are killed. A folder that has stores already is refused: fixtures are never rewritten.

The processes run on an injected clock that starts at `START`, on a host called `shop-1`, and on a direct engine whose
build is called `compatibility fixture`: leases are over and evidence epochs differ wherever the fixtures are read.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WORK = Path("/tmp/vesper-compatibility")  # definitions hold the absolute paths of called nodes
START = datetime(2025, 1, 8, 14, 23, 15, tzinfo=UTC)
STORES = ("journal.sqlite", "traces.sqlite", "migration.sqlite")
SPOOL = "unsaved_findings.spool"
IR_NODES = (
    "ir/nodes/collections_v1",
    "ir/nodes/lifecycle_v1",
    "ir/nodes/loops_v1",
    "ir/nodes/requests_v1",
    "service/nodes/fee_v1",
    "service/nodes/pay_v1",
    "service/nodes/payment_decision_v1",
    "service/nodes/wire_v1",
)
_OFFSET = "COMPATIBILITY_CLOCK_OFFSET_NS"
_SECONDS = 120.0


def main(sources: Path, target: Path) -> None:
    """Copy the inputs and write every fixture."""
    existing = [name for name in STORES if (target / "service" / name).exists()]
    if existing:
        raise SystemExit(f"{target / 'service'} has {', '.join(existing)}: fixtures are never rewritten")
    if WORK.exists():
        raise SystemExit(f"{WORK} exists: remove it, or wait for the process that writes there")
    try:
        _write(sources, WORK)
        shutil.copytree(WORK, target, dirs_exist_ok=True)
    finally:
        shutil.rmtree(WORK, ignore_errors=True)


def _write(sources: Path, target: Path) -> None:
    service = target / "service"
    _copy_inputs(sources, target)
    writer = Writer(target)
    expected: dict[str, Any] = {"version": writer.vesper("--version").strip()}
    expected |= writer.write_journal()
    expected |= writer.write_traces()
    expected |= writer.write_migration()
    expected["semantic_hashes"] = writer.write_ir()
    (target / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for name in STORES:
        _compact(service / name)
    shutil.rmtree(service / ".vesper")
    for folder in service.rglob("__pycache__"):
        shutil.rmtree(folder)


def _copy_inputs(sources: Path, target: Path) -> None:
    for name in ("service/vesper.toml", "service/shop_effects.py", "service/secrets.json"):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(sources / name, target / name)
    for name in ("service/nodes", "ir/nodes"):
        shutil.copytree(sources / name, target / name, dirs_exist_ok=True)


def _compact(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        connection.execute("PRAGMA journal_mode = DELETE")  # the page size of a WAL file is fixed
        connection.execute("PRAGMA page_size = 1024")  # most tables hold a few hundred bytes
        connection.execute("VACUUM")
        connection.execute(f"PRAGMA journal_mode = {mode}")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not path.with_name(f"{path.name}-wal").exists()


class Writer:
    """Runs the processes of the fixture's service."""

    def __init__(self, target: Path) -> None:
        self.target = target.resolve()
        self.service = self.target / "service"
        secrets = json.loads((self.service / "secrets.json").read_text(encoding="utf-8"))
        offset = int(START.timestamp()) * 1_000_000_000 - time.time_ns()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("VESPER_")}
        self._environment = {**inherited, **secrets, "VESPER_CACHE": "off", _OFFSET: str(offset), "COLUMNS": "120"}

    def process(self, *arguments: str, code: int = 0, folder: Path | None = None, kill_at: str = "") -> str:
        """Run one process of the service and return its standard output."""
        done = subprocess.run(
            [sys.executable, str(Path(__file__).resolve()), "--process", *arguments],
            cwd=folder or self.service,
            env={**self._environment, "COMPATIBILITY_KILL_AT": kill_at},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def vesper(self, *arguments: str, code: int = 0, folder: Path | None = None, kill_at: str = "") -> str:
        return self.process("vesper", *arguments, code=code, folder=folder, kill_at=kill_at)

    def vesper_json(self, *arguments: str) -> Any:
        return json.loads(self.vesper(*arguments, "--format", "json"))

    def run(
        self, node: str, *inputs: str, code: int = 0, kill_at: str = "", engine: str = "python", **more: str
    ) -> str:
        """Run a node, and return the id of its execution, which is the newest of the journal."""
        given = [part for each in inputs for part in ("-i", each)]
        named = [part for name, value in more.items() for part in (f"--{name}", value)]
        now = START.isoformat().replace("+00:00", "Z")
        self.vesper("run", node, *given, "--engine", engine, "--now", now, *named, code=code, kill_at=kill_at)
        return str(self.vesper_json("journal", "list", "--limit", "1")[0]["execution"])

    # -- the journal ------------------------------------------------------------------------------

    def write_journal(self) -> dict[str, Any]:
        earlier = self.service / "earlier.toml"
        text = (self.service / "vesper.toml").read_text(encoding="utf-8")
        earlier.write_text(
            text.replace('key_secret = "journal_key_2025"', 'key_secret = "journal_key_2024"').replace(
                'earlier_key_secrets = ["journal_key_2024"]\n', ""
            ),
            encoding="utf-8",
        )
        runs = {
            "sealed_earlier": self.run("vault_v1", "event_id=e1", "customer=eve", config="earlier.toml"),
            "finished": self.run("pay_v1", "order_id=o1", "customer=ann", "amount=10.50"),
            "finished_interp": self.run("pay_v1", "order_id=o2", "customer=ann", "amount=7", engine="interp"),
            "declared_error": self.run("pay_v1", "order_id=o3", "customer=nobody", "amount=1", code=1),
            "failed": self.run("pay_v1", "order_id=o4", "customer=broke", "amount=3", code=1),
            "blob": self.run("statement_v1", "event_id=e2", "customer=ann", "lines=1400"),
            "sealed": self.run("vault_v1", "event_id=e3", "customer=ada"),
            "in_doubt": self.run("wire_v1", "event_id=e4", "customer=bob", "amount=99.90", code=-9, kill_at="wire"),
        }
        earlier.unlink()
        self.vesper("journal", "recover", code=1)  # the killed run is in doubt from here on
        for name, engine in (("unfinished", "python"), ("unfinished_interp", "interp")):
            inputs = (f"order_id={name}", "customer=cleo", "amount=20")
            runs[name] = self.run("pay_v1", *inputs, code=-9, kill_at="charge", engine=engine)
        self.vesper("audit", "export", "-o", "audit.jsonl")
        self.vesper("journal", "verify")
        (self.service / "performed.jsonl").unlink()
        shown = {
            name: [
                {part: entry[part] for part in ("kind", "path", "key", "hash")}
                for entry in self.vesper_json("journal", "show", execution, "--reveal")["entries"]
            ]
            for name, execution in runs.items()
        }
        return {"runs": runs, "entries": shown, "audit": self.vesper("audit", "verify").splitlines()[0]}

    # -- traces -----------------------------------------------------------------------------------

    def write_traces(self) -> dict[str, Any]:
        runs = {each["node"]: each["execution"] for each in self.vesper_json("journal", "list", "--status", "ended")}
        finished = next(
            each["execution"]
            for each in self.vesper_json("journal", "list", "--node", "pay_v1", "--status", "ended")
            if each["outcome"] == "returned"
        )
        traces = {
            "pure": self.trace("amount=50"),
            "contract_broken": self.trace("amount=0", code=1),
            "both_engines": self.trace("amount=2500", engine="both"),
        }
        self.vesper("replay", traces["pure"], "--set", "input.amount=20000", "--save")
        traces["rerun"] = self.newest_stored()
        self.vesper("replay", runs["vault_v1"], "--set", 'text.response="another text"', "--save", "--reveal")
        traces["sealed_rerun"] = self.newest_stored()
        traces["diverged"] = self.process("add_diverged", traces["pure"]).strip()
        files = self.target / "traces"
        files.mkdir(exist_ok=True)
        for name, trace in {**traces, "effects": finished}.items():
            if name != "sealed_rerun":
                self.vesper("traces", "export", trace, "-o", str(files / f"{name}.json"))
        return {"traces": traces}

    def trace(self, amount: str, code: int = 0, engine: str = "python") -> str:
        """Run the pure node with a stored trace."""
        self.vesper("run", "discount_v1", "-i", amount, "--trace", "--engine", engine, code=code)
        return self.newest_stored()

    def newest_stored(self) -> str:
        with closing(sqlite3.connect(self.service / "traces.sqlite")) as connection:
            return str(connection.execute("SELECT trace_id FROM traces ORDER BY rowid DESC LIMIT 1").fetchone()[0])

    # -- the migration store ----------------------------------------------------------------------

    def write_migration(self) -> dict[str, Any]:
        self.process("route_enumerated", "tariff_v1")
        self.process("route_enumerated", "toll_v1")
        self.process("route_agreeing", "discount_v1", "230")
        self.process("route_agreeing", "surcharge_v1", "20")
        self.process("route_diverging", "rebate_v1")
        by = ("--by", "ada")
        self.vesper("migrate", "pin", "toll", "dual_verify", "--for", "90d", "--why", "the sale", *by)
        self.vesper("migrate", "kill", "surcharge", "--why", "complaints about surcharges", *by)
        self.process("leave_findings", "payment_decision_v1", code=-9)
        (left,) = (self.service / ".vesper" / "migration").glob("*.spool")
        left.rename(self.service / SPOOL)
        parts = ("node", "epoch", "mode", "clean", "divergences", "open", "latches", "pin", "is_complete")
        (divergence,) = self.vesper_json("divergences", "list", "--all")
        return {
            "status": [
                {part: each[part] for part in parts} for each in self.vesper_json("status", "--all-epochs")["nodes"]
            ],
            "history": {
                each["node"]: [line["hash"] for line in each["lines"]]
                for each in self.vesper_json("migrate", "history")
            },
            "divergence": self.vesper_json("divergences", "show", divergence["fingerprint"]),
        }

    # -- IR ---------------------------------------------------------------------------------------

    def write_ir(self) -> dict[str, str]:
        hashes = {}
        for name in IR_NODES:
            path = self.target / f"{name}.vsp"
            ir = self.vesper("compile", f"nodes/{path.name}", "--emit", "ir", folder=path.parents[1])
            (self.target / "ir" / f"{path.stem}.json").write_bytes(ir.removesuffix("\n").encode())
            hashes[path.stem] = self.process("semantic_hash", f"nodes/{path.name}", folder=path.parents[1]).strip()
        return hashes


# -- inside the processes ---------------------------------------------------------------------------


def _process(name: str, *arguments: str) -> None:
    """Run one process of the service on the injected clock, host and build."""
    offset, now = int(os.environ[_OFFSET]), time.time_ns
    time.time_ns = lambda: now() + offset
    time.time = lambda: (now() + offset) / 1e9
    socket.gethostname = lambda: "shop-1"
    sys.path.insert(0, str(ROOT))
    from vesper.migration.router import epoch

    setattr(epoch, "build", lambda: "compatibility fixture")  # noqa: B010
    globals()[f"_{name}"](*arguments)


def _vesper(*arguments: str) -> None:
    from vesper.cli.main import main

    sys.argv = ["vesper", *arguments]
    main()


def _semantic_hash(path: str) -> None:
    from vesper.compiler import compile_file

    compiled, _ = compile_file(Path(path))
    assert compiled is not None
    print(compiled.semantic_hash)


def _add_diverged(trace: str) -> None:
    """Store a copy of a trace with a divergence."""
    from vesper.cli.traces.open_traces import traces_of
    from vesper.config.settings import read_config
    from vesper.journal.execution_id import trace_id

    with traces_of(read_config(Path("vesper.toml").resolve())) as traces:
        name = trace_id(time.time_ns())
        found = replace(traces.find(trace), trace_id=name, divergence="interp parts from python, at discount")
        traces.store.add(found)
    print(name)


def _route_enumerated(node: str) -> None:
    """Route a node until all of its inputs are compared."""
    import vesper

    loaded = vesper.load(f"nodes/{node}.vsp", engine="auto")
    _wait(lambda: loaded(zone="near", express=True).ok and loaded.mode == "direct_only")


def _route_agreeing(node: str, count: str) -> None:
    """Route as many distinct executions, all of which agree."""
    import vesper

    loaded = vesper.load(f"nodes/{node}.vsp", engine="auto")
    for number in range(1, int(count) + 1):
        assert loaded(amount=number).ok
    if int(count) > 206:
        _wait(lambda: loaded.mode == "canary_direct")


def _route_diverging(node: str) -> None:
    """Route executions, two of which diverge in the same place."""
    import vesper

    _plant()
    loaded = vesper.load(f"nodes/{node}.vsp", engine="auto")
    for amount in (50, 60, 700, 800):
        assert loaded(amount=amount).ok


def _leave_findings(node: str) -> None:
    """Find a divergence while the store is locked, and die with the finding in the spool."""
    import signal

    import vesper

    _plant()
    loaded = vesper.load(f"nodes/{node}.vsp", engine="auto")
    payment = {"balance": 100_000, "currency": "USD", "country": "DE", "user_age_days": 400}
    assert loaded(amount=50, **payment).ok
    time.sleep(3)  # until the store has the agreement
    with closing(sqlite3.connect("migration.sqlite", isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert loaded(amount=5000, **payment).ok
        folder = Path(".vesper/migration")
        _wait(lambda: any(path.stat().st_size for path in folder.glob("*.spool")))
        os.kill(os.getpid(), signal.SIGKILL)


def _plant() -> None:
    """Make the direct engine add a cent to rebates and fees above 20."""
    from tests.unit.migration.support.routed import Misbehaving
    from vesper.engines.outcome import Returned
    from vesper.migration.router.routes import Routes

    def lie(ran: Any) -> Any:
        outcome = ran.outcome
        value: dict[str, Any] = dict(outcome.value) if isinstance(outcome, Returned) else {}
        wrong = {name: value[name] + Decimal("0.01") for name in {"rebate", "fee"} & set(value) if value[name] > 20}
        return ran._replace(outcome=Returned({**value, **wrong})) if wrong else ran

    def planted(_: Routes, compiled: Any) -> Any:
        found = Misbehaving(compiled)
        found.does = lie
        return found

    setattr(Routes, "_direct", planted)  # noqa: B010


def _wait(is_done: Any) -> None:
    until = time.monotonic() + _SECONDS
    while not is_done():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.05)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--process"]:
        _process(*sys.argv[2:])
    elif len(sys.argv) == 3:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        raise SystemExit(__doc__)
