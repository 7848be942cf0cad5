"""Read journals, traces, IR and migration stores that version 0.2 wrote.

The fixtures below `v0_2` are never rewritten; `write_fixtures.py` wrote them. Each test copies them and reads them with
the commands of the current version. What 0.2 printed when it wrote them is in `expected.json`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.prepared import completed
from vesper.compiler import Compiled
from vesper.engines.registry import ENGINES
from vesper.host.masking import SENSITIVE, Masks
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.decode import IrError, decode
from vesper.language.ir.encode import encode, semantic_hash

FIXTURES = Path(__file__).parent / "v0_2"
EXPECTED: dict[str, Any] = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))
RUNS: dict[str, str] = EXPECTED["runs"]
TRACES: dict[str, str] = EXPECTED["traces"]
SECRETS: dict[str, str] = json.loads((FIXTURES / "service" / "secrets.json").read_text(encoding="utf-8"))
TRACE_FILES = sorted((FIXTURES / "traces").glob("*.json"))
IR_FILES = sorted((FIXTURES / "ir").glob("*.json"))
SPOOL = "shop-1:4711:1:000000000000+00000001.spool"


class Service:
    """A copy of the folder of the service, and the commands of the current version in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "service"
        shutil.copytree(FIXTURES / "service", self.folder)
        self.spool = self.folder / ".vesper" / "migration" / SPOOL
        self.spool.parent.mkdir(parents=True)
        (self.folder / "unsaved_findings.spool").rename(self.spool)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("VESPER_")}
        self.environment = {**inherited, **SECRETS, "VESPER_CACHE": "off", "COLUMNS": "200"}

    def vesper(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = completed(arguments, self.folder, self.environment)
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def read(self, *arguments: str) -> Any:
        return json.loads(self.vesper(*arguments, "--format", "json").stdout)

    def entries(self, run: str, *options: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.read("journal", "show", RUNS[run], *options)["entries"]
        return found

    def performed(self) -> list[dict[str, str]]:
        """The effects that were performed since the fixture was written."""
        path = self.folder / "performed.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    def change(self, name: str, old: bytes, new: bytes) -> None:
        """Overwrite bytes in the middle of a file."""
        path = self.folder / name
        data = path.read_bytes()
        assert old in data
        assert len(old) == len(new)
        path.write_bytes(data.replace(old, new))


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)


# -- the journal ----------------------------------------------------------------------------------


def test_the_journal_lists_every_run(service: Service) -> None:
    listed = {each["execution"]: each for each in service.read("journal", "list")}
    found = {name: (listed[run]["status"], listed[run]["outcome"]) for name, run in RUNS.items()}
    assert found == {
        "finished": ("ended", "returned"),
        "finished_interp": ("ended", "returned"),
        "declared_error": ("ended", "declared_error"),
        "failed": ("ended", "failed"),
        "blob": ("ended", "returned"),
        "sealed": ("ended", "returned"),
        "sealed_earlier": ("ended", "returned"),
        "in_doubt": ("in_doubt", None),
        "unfinished": ("running", None),
        "unfinished_interp": ("running", None),
    }
    assert len(listed) == len(RUNS)


@pytest.mark.parametrize("run", RUNS)
def test_the_journal_shows_every_entry(run: str, service: Service) -> None:
    entries = service.entries(run, "--reveal")
    parts = ("kind", "path", "key", "hash")
    assert [{part: entry[part] for part in parts} for entry in entries] == EXPECTED["entries"][run]


def test_the_journal_shows_the_values_of_a_run(service: Service) -> None:
    start, *_, end = service.entries("finished")
    assert start["body"]["inputs"] == {"amount": {"$decimal": "10.50"}, "customer": "ann", "order_id": "o1"}
    assert end["body"]["value"]["total"] == {"$decimal": "10.80"}
    assert end["body"]["value"]["receipt"] == "ch_ann"
    (text,) = [entry["body"]["value"] for entry in service.entries("blob") if entry["path"] == "text"]
    assert len(text.encode()) > 16 << 10
    assert text.splitlines()[-1] == "01399 ann é"


def test_the_hash_chains_of_the_journal_hold(service: Service) -> None:
    service.vesper("journal", "verify")


def test_a_changed_byte_breaks_the_hash_chain(service: Service) -> None:
    service.change("journal.sqlite", b'"id":"ch_ann"', b'"id":"ch_anx"')
    service.vesper("journal", "verify", code=1)
    service.vesper("journal", "verify", RUNS["finished"], code=1)
    service.vesper("journal", "verify", RUNS["failed"])


@pytest.mark.parametrize(
    "run, secret, customer",
    [
        ("sealed", "VESPER_SECRET_JOURNAL_KEY_2025", "ada"),
        ("sealed_earlier", "VESPER_SECRET_JOURNAL_KEY_2024", "eve"),
    ],
)
def test_a_sealed_run_opens_with_its_key_alone(run: str, secret: str, customer: str, service: Service) -> None:
    assert customer not in json.dumps(service.entries(run))
    start = service.entries(run, "--reveal")[0]
    assert start["body"]["inputs"]["customer"] == customer
    service.environment[secret] = "another key, which seals nothing here"
    refused = service.vesper("journal", "show", RUNS[run], "--reveal", "--format", "json", code=1)
    assert f'"{customer}"' not in refused.stdout


@pytest.mark.parametrize("engine", [None, "python", "interp"])
def test_recovery_finishes_unfinished_runs_exactly_once(engine: str | None, service: Service) -> None:
    options = () if engine is None else ("--engine", engine)
    recovered = service.vesper("journal", "recover", *options).stdout
    assert "2 executions finished" in recovered
    charged = [each for each in service.performed() if each["effect"] == "charge"]
    assert sorted(each["key"] for each in charged) == ["unfinished", "unfinished_interp"]
    assert service.performed() == charged  # results that the journal has are not requested again
    for run in ("unfinished", "unfinished_interp"):
        end = service.entries(run)[-1]
        assert (end["kind"], end["body"]["outcome"]) == ("END", "returned")
        assert end["body"]["value"]["receipt"] == "ch_cleo"
        assert end["body"]["value"]["total"] == {"$decimal": "20.58"}
    service.vesper("journal", "recover", *options)
    assert service.performed() == charged
    service.vesper("journal", "verify")


def test_a_run_in_doubt_resolves(service: Service) -> None:
    why = ("--why", "seen in the ledger", "--by", "ada")
    service.vesper("journal", "resolve", RUNS["in_doubt"], "wire", "--result", '"wire_9"', *why)
    end = service.entries("in_doubt")[-1]
    assert end["body"]["value"] == {"wire": "wire_9"}
    assert service.performed() == []
    service.vesper("journal", "verify")
    service.vesper("audit", "verify")


def test_a_step_in_doubt_that_was_not_done_is_performed_once(service: Service) -> None:
    service.vesper("journal", "resolve", RUNS["in_doubt"], "wire", "--not-done", "--why", "not in the ledger")
    assert service.performed() == [{"effect": "wire", "customer": "bob", "amount": "99.90"}]
    assert service.entries("in_doubt")[-1]["body"]["value"] == {"wire": "wire_bob"}


def test_the_audit_log_is_whole(service: Service) -> None:
    last_hash = EXPECTED["audit"].rpartition(" ")[2]
    assert last_hash in service.vesper("audit", "verify").stdout
    assert last_hash in service.vesper("audit", "verify", "--file", "audit.jsonl").stdout


@pytest.mark.parametrize("name, options", [("journal.sqlite", ()), ("audit.jsonl", ("--file", "audit.jsonl"))])
def test_a_changed_audit_log_is_reported(name: str, options: tuple[str, ...], service: Service) -> None:
    service.change(name, b'"action":"vault"', b'"action":"vaulu"')
    service.vesper("audit", "verify", *options, code=1)


# -- traces ---------------------------------------------------------------------------------------


def test_the_trace_store_lists_every_trace(service: Service) -> None:
    listed = {each["trace_id"]: each for each in service.read("traces", "list", "--limit", "100")}
    assert set(TRACES.values()) | set(RUNS.values()) == set(listed)
    assert listed[TRACES["contract_broken"]]["outcome"] == "contract_broken"
    assert listed[TRACES["rerun"]]["origin"] == TRACES["pure"]
    assert listed[TRACES["both_engines"]]["engines"] == ["python", "interp"]
    diverged = service.read("traces", "list", "--diverged")
    assert [each["trace_id"] for each in diverged] == [TRACES["diverged"]]


@pytest.mark.parametrize("engine", ["python", "interp"])
@pytest.mark.parametrize("path", TRACE_FILES, ids=lambda path: path.stem)
def test_a_trace_file_replays_as_recorded(path: Path, engine: str, service: Service) -> None:
    service.vesper("replay", str(path), "--engine", engine)


@pytest.mark.parametrize("trace", TRACES)
def test_a_stored_trace_replays_and_exports_as_written(trace: str, service: Service) -> None:
    service.vesper("replay", TRACES[trace], "--reveal")
    exported = FIXTURES / "traces" / f"{trace}.json"
    if trace != "sealed_rerun":  # a file would not be sealed
        service.vesper("traces", "export", TRACES[trace], "-o", "exported.json")
        assert (service.folder / "exported.json").read_bytes() == exported.read_bytes()


@pytest.mark.parametrize("run", ["finished", "finished_interp", "declared_error", "failed", "blob", "sealed"])
def test_a_journalled_run_replays_as_recorded(run: str, service: Service) -> None:
    service.vesper("replay", RUNS[run], "--reveal")


def test_a_trace_reruns_with_a_change(service: Service) -> None:
    changed = service.vesper("replay", TRACES["pure"], "--set", "input.amount=20000").stdout
    assert "discount: 1000.00" in changed


def test_a_changed_trace_file_is_refused(service: Service) -> None:
    shutil.copy(FIXTURES / "traces" / "effects.json", service.folder)
    service.change("effects.json", b'"ch_ann"', b'"ch_anx"')
    service.vesper("replay", "effects.json", code=1)


# -- IR -------------------------------------------------------------------------------------------


def compiled_ir(name: str, ir: bytes | None = None) -> Compiled:
    """The node of IR bytes, with the nodes that it calls."""
    data = (FIXTURES / "ir" / f"{name}.json").read_bytes() if ir is None else ir
    node = decode(data)
    callees = tuple(compiled_ir(each["node"]) for each in json.loads(data)["semantics"]["calls"])
    return Compiled(SourceFile(f"{name}.vsp", ""), node, (), data, EXPECTED["semantic_hashes"][name], callees)


@pytest.mark.parametrize("name", [path.stem for path in IR_FILES])
def test_ir_loads_on_every_engine_and_encodes_to_the_same_bytes(name: str) -> None:
    compiled = compiled_ir(name)
    assert encode(compiled.node) == compiled.ir
    assert semantic_hash(compiled.node) == EXPECTED["semantic_hashes"][name]
    assert {engine: ENGINES[engine].load(compiled).semantic_hash for engine in ENGINES} == dict.fromkeys(
        ENGINES, EXPECTED["semantic_hashes"][name]
    )


@pytest.mark.parametrize("name", [path.stem for path in IR_FILES])
def test_changed_ir_has_another_hash_or_is_refused(name: str) -> None:
    data = compiled_ir(name).ir
    renamed = compiled_ir(name, data.replace(f'"node_id":"{name}"'.encode(), b'"node_id":"other_v1"'))
    assert semantic_hash(renamed.node) != EXPECTED["semantic_hashes"][name]
    for engine in set(ENGINES) - {"python"}:  # the direct engine computes the hash of the bytes
        assert ENGINES[engine].load(renamed).semantic_hash == semantic_hash(renamed.node)
    with pytest.raises(IrError):
        compiled_ir(name, data.replace(b'"ir_version":2', b'"ir_version":9'))
    with pytest.raises(IrError):
        compiled_ir(name, data.replace(b":", b": ", 1))


def test_the_ir_fixtures_cover_every_construct() -> None:
    statements: set[str] = set()
    expressions: set[str] = set()
    kinds: set[str] = set()
    types: set[str] = set()
    for path in IR_FILES:
        semantics = json.loads(path.read_bytes())["semantics"]
        types.add(semantics["type"])
        expressions.update(*semantics["expressions"])
        kinds.update(each["for"]["kind"] for each in semantics["expressions"] if "for" in each)
        statements.update(_statements(semantics["body"]))
    assert statements == {"step", "return", "raise", "require", "branch", "loop", "request", "call", "handler"}
    assert expressions == {
        *("literal", "input", "constant", "step", "output", "error", "now", "result", "call", "if", "and", "or"),
        *("local", "let", "for", "array", "record", "field"),
    }
    assert kinds == {
        *("array", "set", "map", "forall", "exists", "sum", "count", "min", "max", "avg", "sort_by", "distinct_by"),
        *("min_by", "max_by", "group_by", "count_by", "index_by", "take_while", "drop_while", "fold"),
    }
    assert types == {
        *("function", "data_transform", "http_handler", "event_handler", "scheduled_job", "workflow", "state_machine"),
    }


def _statements(block: list[dict[str, Any]]) -> set[str]:
    found: set[str] = set()
    for statement in block:
        ((kind, body),) = statement.items()
        blocks = [each["body"] for each in (*body.get("arms", ()), *body.get("handlers", ()))]
        blocks += [body[part] for part in ("else", "body") if part in body]
        found |= {kind, *(("handler",) if body.get("handlers") else ())}.union(*map(_statements, blocks))
    return found


# -- the migration store --------------------------------------------------------------------------

_ROUTE = """
import sys, time, vesper
name, mode, inputs = sys.argv[1], sys.argv[2], eval(sys.argv[3])
node = vesper.load(f"nodes/{name}.vsp", engine="auto")
until = time.monotonic() + 120
while True:
    outcome = node(**inputs)
    assert outcome.ok, outcome
    if node.mode == mode:
        break
    assert time.monotonic() < until, node.mode
    time.sleep(0.05)
time.sleep(1)
assert node.mode == mode, node.mode
"""


def states(service: Service) -> dict[tuple[str, str], dict[str, Any]]:
    """What the store has of each node, by node and epoch."""
    listed = service.read("status", "--all-epochs")["nodes"]
    return {(each["node"], each["epoch"]): each for each in listed}


def assert_states_as_written(service: Service) -> None:
    found = states(service)
    for expected in EXPECTED["status"]:
        state = found[expected["node"], expected["epoch"]]
        assert {part: state[part] for part in expected} == expected


def test_the_status_of_every_node_is_read(service: Service) -> None:
    assert_states_as_written(service)
    assert {each["node"]: each["mode"] for each in EXPECTED["status"]} == {
        "discount_v1": "canary_direct",
        "payment_decision_v1": "shadow_direct",
        "rebate_v1": "shadow_direct",
        "surcharge_v1": "python_only",
        "tariff_v1": "direct_only",
        "toll_v1": "dual_verify",
    }
    service.vesper("status")
    for node in ("tariff", "toll", "rebate"):
        service.vesper("status", node)


def test_the_history_is_read_and_its_hash_chain_holds(service: Service) -> None:
    history = service.read("migrate", "history")
    assert {each["node"]: [line["hash"] for line in each["lines"]] for each in history} == EXPECTED["history"]
    assert all(each["problem"] is None for each in history)
    pinned = service.vesper("migrate", "history", "toll").stdout
    assert "the sale" in pinned
    assert "ada" in pinned


def test_a_changed_line_of_the_history_is_reported(service: Service) -> None:
    service.change("migration.sqlite", b'"why":"the sale"', b'"why":"the sole"')
    service.vesper("migrate", "history", code=1)
    service.vesper("migrate", "history", "tariff")


def test_an_open_divergence_is_shown_with_its_exemplars(service: Service) -> None:
    expected = EXPECTED["divergence"]
    (listed,) = service.read("divergences", "list", "--all")
    assert (listed["node"], listed["status"], listed["count"]) == ("rebate_v1", "open", 2)
    shown = service.read("divergences", "show", listed["fingerprint"])
    for each in shown["exemplars"]:  # not in 0.2
        assert each.pop("differs")["where"]
    parts = ("fingerprint", "node", "where", "kind", "path", "first", "last", "exemplars")
    assert {part: shown[part] for part in parts} == {part: expected[part] for part in parts}
    assert len(shown["exemplars"]) == 2


def test_unsaved_findings_reach_the_store(service: Service) -> None:
    """The next process that routes a node reads the spool of a killed one."""
    assert service.read("status")["warnings"]
    route(service, "rebate_v1", "shadow_direct", {"amount": 50})
    assert not service.spool.exists()
    found = {each["node"]: each for each in service.read("divergences", "list", "--all")}
    assert set(found) == {"rebate_v1", "payment_decision_v1"}
    assert found["payment_decision_v1"]["where"] == "outputs.fee"
    (exemplar,) = service.read("divergences", "show", found["payment_decision_v1"]["fingerprint"])["exemplars"]
    assert exemplar["inputs"]["amount"] == 5000


def test_damaged_findings_are_kept_aside(service: Service) -> None:
    data = service.spool.read_bytes()
    service.spool.write_bytes(data.replace(b"payment_decision_v1", b"payment_decision_v2", 1))
    route(service, "rebate_v1", "shadow_direct", {"amount": 50})
    assert [each["node"] for each in service.read("divergences", "list", "--all")] == ["rebate_v1"]
    assert [path.name for path in (service.spool.parent / "aside").iterdir()] == [SPOOL]


def route(service: Service, node: str, mode: str, inputs: dict[str, object]) -> None:
    """Call a node on both engines until it has the mode; the old epochs stay as written."""
    done = subprocess.run(
        [sys.executable, "-c", _ROUTE, node, mode, repr(inputs)],
        cwd=service.folder,
        env=service.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"


def test_sensitive_ir_without_taint_flags_is_masked_whole() -> None:
    data = (FIXTURES / "ir" / "requests_v1.json").read_bytes()
    node = decode(data)
    assert node.taint is None
    assert node.grants.sensitive
    masks = Masks(Compiled(SourceFile("requests_v1.vsp", ""), node, (), data, semantic_hash(node)))
    given = {each.name: "clear" for each in node.inputs}
    assert set(masks.inputs(given).values()) == {SENSITIVE}
    assert set(masks.outputs({each.name: "clear" for each in node.outputs}).values()) == {SENSITIVE}
