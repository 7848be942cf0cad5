"""`vesper migrate fill`: generated inputs for paths that traffic took, and for nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.journalled import invoke
from tests.unit.migration.support.routed import compiled
from tests.unit.migration.support.wrong_engine import Inputs, WrongEngine
from vesper.engines.engine import Done
from vesper.engines.outcome import Returned
from vesper.engines.python_engine import PythonEngine
from vesper.migration.control.state import Kill, NodeState, Settings
from vesper.migration.stores import ledger
from vesper.migration.stores.store import NodeKey, Store, keys_of, open_store

NODES = Path("nodes").absolute()
PAYMENT = ("-i", "balance=100.00", "-i", "currency=USD", "-i", "country=DE", "-i", "user_age_days=400")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Of a service that had one request: one path has the evidence of one run."""
    compiled()  # from where the nodes are
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(NODES.parent))  # for the process that runs it again
    monkeypatch.setenv("VESPER_NODES", str(NODES))
    done = invoke("run", "payment_decision", "--engine", "auto", "-i", "amount=50.00", *PAYMENT)
    assert done.exit_code == 0, done.output
    return open_store(f"sqlite:{tmp_path / '.vesper' / 'migration.db'}")


def state(store: Store) -> tuple[NodeKey, NodeState]:
    (key,) = keys_of(store)
    return key, ledger.load(store, key, Settings())


def test_a_path_that_traffic_took_gets_what_it_lacks_and_the_node_gets_nothing(store: Store) -> None:
    done = invoke("migrate", "fill", "payment_decision", "--seconds", "600", "--format", "json")
    assert done.exit_code == 0, done.output
    (path,) = json.loads(done.stdout)["paths"]
    assert (path["clean"], path["generated"], path["lacks"], path["is_proven"]) == (1, 205, 0, True)
    _, now = state(store)
    assert (now.clean, now.compared, len(now.paths)) == (1, 1, 1)
    done = invoke("migrate", "fill", "payment_decision")
    assert done.stdout == "payment_decision_v1: no path of traffic needs evidence that can be generated\n"
    assert "1 and 205 generated: enough evidence" in invoke("status", "payment_decision").stdout
    store.close()


def test_it_ends_with_what_it_has(store: Store) -> None:
    done = invoke("migrate", "fill", "payment_decision", "--max-examples", "1", "--seed", "7")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("payment_decision_v1: 1 input tried, ")
    store.close()


def test_a_disagreement_is_a_divergence_like_any_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(_inputs: Inputs, done: Done) -> Done:
        outcome = done.outcome
        if not isinstance(outcome, Returned):
            return done
        return replace(done, outcome=Returned({**outcome.value, "risk": 99}))

    monkeypatch.setattr("vesper.migration.workers.rerun.PythonEngine", lambda: WrongEngine(PythonEngine(), lie))
    done = invoke("migrate", "fill", "payment_decision", "--seconds", "600")
    assert done.exit_code == 3, done.output
    _, now = state(store)
    (fingerprint,) = now.open
    assert done.stderr == f"THE ENGINES DISAGREE: `vesper divergences show {fingerprint}`\n"
    assert "different outcomes" in invoke("divergences", "show", fingerprint).stdout
    store.close()


def test_what_cannot_be_filled(store: Store, tmp_path: Path) -> None:
    def refused(node: str) -> str:
        done = invoke("migrate", "fill", node)
        assert done.exit_code == 1, done.output
        return done.stderr

    assert "payment_handler_v1 has effects, whose answers are not generated" in refused("payment_handler")
    text = (NODES / "payments" / "payment_decision_v1.vsp").read_text(encoding="utf-8")
    (tmp_path / "other.vsp").write_text(text.replace("0.029", "0.028"), encoding="utf-8")
    assert "payment_decision_v1 was not routed with this definition" in refused("./other.vsp")
    ledger.apply_event(store, state(store)[0], Kill("ann", "a test"), Settings(), 1)
    assert "is in python_only, where no run counts as evidence" in refused("payment_decision")
    store.close()
