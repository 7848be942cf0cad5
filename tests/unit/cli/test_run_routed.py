"""`vesper run --engine auto`: one request like those of a service."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.support.journalled import invoke
from tests.unit.migration.support.places import MAIN, divergence
from tests.unit.migration.support.routed import compiled
from vesper.engines.python_engine import PythonProgram
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import Diverged, Kill, Settings
from vesper.migration.stores import ledger
from vesper.migration.stores.store import Batch, Happened, keys_of, open_store

NODES = Path("nodes").absolute()
PAYMENT = ("-i", "balance=100.00", "-i", "currency=USD", "-i", "country=DE", "-i", "user_age_days=400")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled()  # from where the nodes are
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(NODES.parent))  # for the process that runs it again


def run(*more: str, amount: str = "50.00") -> tuple[int, str, str]:
    asked = ("payment_decision", "--nodes", str(NODES), "--engine", "auto", "-i", f"amount={amount}", *PAYMENT, *more)
    done = invoke("run", *asked)
    return done.exit_code, done.stdout, done.stderr


def test_it_answers_as_the_mode_says_and_counts(tmp_path: Path) -> None:
    code, said, _ = run()
    assert code == 0
    assert said.splitlines()[0].split() == ["decision", "approve"]
    assert said.splitlines()[-1] == "mode shadow_direct: Python answers, and the direct engine follows"
    code, said, _ = run("--format", "json", amount="60.00")
    assert code == 0
    found = json.loads(said)
    assert (found["mode"], found["divergences"]) == ("shadow_direct", [])
    assert found["outcomes"]["auto"]["value"]["decision"] == "approve"
    code, _, said = run(amount="0")
    assert code == 1
    assert "precondition broken: `amount > 0`" in said
    assert "mode shadow_direct" in said
    store = open_store(f"sqlite:{tmp_path / '.vesper' / 'migration.db'}")
    (key,) = keys_of(store)
    state = ledger.load(store, key, Settings())
    assert (state.clean, state.unknown, dict(state.open)) == (3, 0, {})
    ledger.apply_event(store, key, Kill("ann", "a test"), Settings(), 1)
    store.close()
    assert json.loads(run("--format", "json")[1])["mode"] == Mode.PYTHON_ONLY.value


def test_a_difference_is_named_and_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PythonProgram.call

    def wrong(self: PythonProgram, *given: object) -> object:
        outcome = right(self, *given)  # type: ignore[arg-type]
        outcome.value["risk"] += 1  # type: ignore[union-attr, operator, index]
        return outcome

    monkeypatch.setattr(PythonProgram, "call", wrong)
    code, said, told = run("--format", "json")
    assert code == 3
    (fingerprint,) = json.loads(said)["divergences"]
    code, _, told = run(amount="40.00")  # on the same path
    assert code == 3
    assert f"THE ENGINES DISAGREE: `vesper divergences show {fingerprint}`" in told


def test_what_another_process_finds_meanwhile_is_not_what_this_run_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run()[0] == 0
    dsn = f"sqlite:{tmp_path / '.vesper' / 'migration.db'}"
    right = PythonProgram.call

    def beside_another(self: PythonProgram, *given: object) -> object:
        store = open_store(dsn)
        (key,) = keys_of(store)
        later_us = time.time_ns() // 1000 + 3_600_000_000  # however long this takes, the run has begun before
        seen = Happened(Diverged(MAIN, "f" * 16), divergence("f" * 16, "theirs", later_us))
        ledger.apply(store, key, Batch("another", 1, (seen,)), Settings(), 1)
        store.close()
        return right(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(PythonProgram, "call", beside_another)
    code, said, _ = run("--format", "json")
    assert (code, json.loads(said)["divergences"]) == (0, [])
    store = open_store(dsn)
    (key,) = keys_of(store)
    assert len(store.divergences(key)) == 1
    store.close()


@pytest.mark.parametrize("dsn", ["redis://127.0.0.1:1/0", "sqlite:spoilt.db"])
def test_a_store_that_is_away_takes_no_answer_away(tmp_path: Path, dsn: str) -> None:
    """What it took to get the answer may have been performed: whoever asked must have it."""
    (tmp_path / "spoilt.db").write_bytes(b"this is no database, and it is long enough to be seen as none" * 20)
    (tmp_path / "vesper.toml").write_text(f'[migration]\nstore = "{dsn}"\n', encoding="utf-8")
    code, said, _ = run("--format", "json")
    assert code == 0
    found = json.loads(said)
    assert found["outcomes"]["auto"]["value"]["decision"] == "approve"
    assert (found["mode"], found["divergences"]) == ("python_only", [])
    code, said, _ = run()
    assert (code, said.splitlines()[-1]) == (0, "mode python_only: Python answers, without a comparison")


def test_an_engine_in_a_process_of_its_own_is_waited_for(tmp_path: Path) -> None:
    """A service has other requests to compare; this is the only one."""
    (tmp_path / "vesper.toml").write_text('[migration]\nisolation = "process"\n', encoding="utf-8")
    assert run()[0] == 0
    store = open_store(f"sqlite:{tmp_path / '.vesper' / 'migration.db'}")
    (key,) = keys_of(store)
    assert ledger.load(store, key, Settings()).clean == 1
    store.close()


def test_a_tolerance_for_nothing_is_said_and_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "vesper.toml").write_text(
        "[migration.nodes.payment_decision.tolerances.fe]\n"
        'absolute = "0.01"\nversion = 1\nuntil = "2999-01-31"\nwhy = "a test"\n',
        encoding="utf-8",
    )
    code, _, said = run()
    assert code == 1
    assert "vesper.toml, [migration.nodes]: payment_decision_v1: the tolerance for `fe`: there is no `fe`" in said
    assert "; there are decision, fee, risk, new_balance" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "option", [("--trace",), ("--case", "x"), ("--record", "x.yaml"), ("--batch", "x.csv")], ids=lambda each: each[0]
)
def test_what_does_not_go_with_it_is_refused(option: tuple[str, ...]) -> None:
    asked = ("payment_decision", "--nodes", str(NODES), "--engine", "auto")
    done = invoke("run", *asked, *option)
    assert done.exit_code == 2
    assert "name an engine, or `both`" in done.stderr or "--batch runs on the direct engine" in done.stderr
