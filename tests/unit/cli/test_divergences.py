"""`vesper divergences` on a real store: what it says, what it refuses, what it does; and the page that shows it."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from tests.support.console import ROOT, _pattern, parse_session
from tests.support.journalled import a_place, compiled_node, invoke, node_text
from tests.support.nodes import PAYMENT_DECISION
from tests.unit.migration.support.divergences import INPUTS, KEY, MINUTE, NOON, a_cent_more, fill, node, put, seen
from tests.unit.migration.support.wrong_engine import DoneLie, Inputs, WrongEngine, recorded
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Done
from vesper.engines.outcome import EngineFault, Returned
from vesper.engines.registry import ENGINES, PAIR
from vesper.migration.compare.divergence_record import divergence_of
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Difference, Disagreement, Fault
from vesper.migration.control.state import Diverged, EngineFaulted, Settings
from vesper.migration.router.routes import happened_of
from vesper.migration.stores import ledger
from vesper.migration.stores.store import Batch, Happened, NodeKey, Store, open_store

PAGE = ROOT / "docs" / "how-to" / "investigate-divergences.md"
STORE = ".vesper/migration.db"
SECRET = "ann@example.com"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A folder with the node and an empty store in the usual place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VESPER_NODES", raising=False)
    (tmp_path / "nodes" / "payments").mkdir(parents=True)
    shutil.copy(PAYMENT_DECISION, tmp_path / "nodes" / "payments")
    (tmp_path / ".vesper").mkdir()
    (tmp_path / "vesper.toml").write_text("", encoding="utf-8")
    found = open_store(f"sqlite:{tmp_path / STORE}")
    yield found
    found.close()


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Callable[[DoneLie | None], None]:
    """Makes the direct engine of the command lie."""

    def lie(at_end: DoneLie | None) -> None:
        engines = {**PAIR, "interp": WrongEngine(PAIR["interp"], at_end)}
        monkeypatch.setattr("vesper.engines.registry.PAIR", engines)

    return lie


def said(*arguments: str, code: int = 0) -> Result:
    done = invoke("divergences", *arguments)
    assert done.exit_code == code, done.output
    return done


def as_json(*arguments: str) -> Any:
    return json.loads(said(*arguments, "--format", "json").stdout)


# -- list and show --------------------------------------------------------------------------------


def test_looking_creates_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vesper.toml").write_text("", encoding="utf-8")
    assert "no node has been routed yet" in said("list").stderr
    assert as_json("list") == []
    for arguments in (["list", "--store", "sqlite:other.db"], ["show", "0"], ["close", "0", "--why", "x"]):
        assert "there is no store at" in said(*arguments, code=1).stderr
    assert [each.name for each in tmp_path.iterdir()] == ["vesper.toml"]


def test_a_list(store: Store) -> None:
    fingerprint = fill(store)
    heading, row = said("list").stdout.splitlines()
    assert heading.split() == ["fingerprint", "node", "where", "kind", "times", "last", "seen", "status"]
    assert row.split()[:5] == [fingerprint, KEY.node, "outputs.fee", "outcome", "2"]
    (listed,) = as_json("list", "--node", "payment_decision")
    assert (listed["count"], listed["first"][:16], listed["last"][:16]) == (2, "2026-11-15T12:00", "2026-11-15T12:01")
    assert listed["is_current"]
    assert "has no node `refund`" in said("list", "--node", "refund", code=1).stderr


def test_older_epochs_and_closed_ones_are_listed_when_asked_for(store: Store) -> None:
    fingerprint = fill(store)
    found, note = seen()
    newer = NodeKey(KEY.node, "f" * 32)
    later = NOON + 10 * MINUTE
    batch = Batch("worker", 1, (Happened(Diverged(note.name, "0" * 16), replace(found, fingerprint="0" * 16)),))
    ledger.apply(store, newer, batch, Settings(), later)
    assert [each["fingerprint"] for each in as_json("list")] == ["0" * 16]
    assert "1 divergence of older epochs still open; --all shows" in said("list").stdout
    assert {each["fingerprint"]: each["is_current"] for each in as_json("list", "--all")} == {
        fingerprint: False,
        "0" * 16: True,
    }
    said("close", "000", "--why", "looked at")
    assert "no open divergences\n" in said("list").stdout
    assert as_json("list") == []
    assert {each["status"] for each in as_json("list", "--all")} == {"open", "closed"}


def test_a_store_without_any_says_so(store: Store) -> None:
    ledger.apply(store, KEY, Batch("worker", 1), Settings(), NOON)
    assert said("list").stdout == "no open divergences\n"
    assert said("list", "--all").stdout == "no divergences\n"


def test_a_divergence_is_found_by_its_beginning(store: Store) -> None:
    fingerprint = fill(store)
    found, note = seen()
    other = fingerprint[:4] + "f" * 12
    put(store, KEY, Happened(Diverged(note.name, other), replace(found, fingerprint=other)))
    assert as_json("show", fingerprint[:5])["fingerprint"] == fingerprint
    stderr = said("show", fingerprint[:4], code=1).stderr
    assert f"several divergences start with `{fingerprint[:4]}`" in stderr
    assert fingerprint in stderr
    assert other in stderr
    assert "the store has no divergence `zz`; `vesper divergences list --all`" in said("show", "zz", code=1).stderr
    assert "is not a fingerprint" in said("show", "", code=1).stderr
    assert "no divergence" in said("show", fingerprint, "--epoch", "999", code=1).stderr


def test_both_answers_stand_side_by_side(store: Store) -> None:
    shown = said("show", fill(store)).stdout
    assert re.search(r"^ {4}\* {2}fee +18\.86400 +18\.87400$", shown, re.MULTILINE)
    assert re.search(r"^ {7}risk +30 +30$", shown, re.MULTILINE)
    assert "amount <= 1000: yes; amount <= 100: no" in shown
    assert shown.count("execution input ") == 2
    (first, second) = as_json("show", fill(store))["exemplars"]
    assert first["inputs"]["amount"] == {"$decimal": "734.56"}
    assert second["inputs"]["amount"] == {"$decimal": "150.00"}


def test_both_requests_stand_side_by_side(store: Store) -> None:
    texts = (
        'asks for charge (x)\nbody = {label: "a"}\nbody.label = "a"',
        'asks for charge (x)\nbody = {label: "b"}\nbody.label = "b"',
    )
    difference = Difference("request", "charge: body.label", "asks", "asks", is_effect=True, requests=texts)
    transcript = recorded(ENGINES["python"].load(node()), INPUTS)
    found = divergence_of(Disagreement(difference, None, None, transcript, None), node(), False, NOON)
    put(store, KEY, Happened(Diverged("", found.fingerprint), found, 0))
    shown = invoke("divergences", "show", found.fingerprint).output
    assert re.search(r"requests\n +python +direct\n", shown)
    assert re.search(r'\* +body\.label +"a" +"b"', shown)
    as_json = json.loads(invoke("divergences", "show", found.fingerprint, "--format", "json").output)
    assert as_json["where"] == "charge: body.label"
    assert as_json["exemplars"][0]["differs"] == {"where": "body.label", "leader": '"a"', "follower": '"b"'}


def test_a_damaged_divergence_is_said_and_hides_no_other(store: Store) -> None:
    fingerprint = fill(store)
    store.transact(KEY, lambda transaction: transaction.put_divergence("0" * 16, '{"format": 2}'))
    listed = said("list", code=1)
    assert "payment_decision_v1: a divergence of another version" in listed.stderr
    assert fingerprint in listed.stdout
    assert fingerprint in said("list", "--format", "json", code=1).stdout
    assert said("show", fingerprint).stdout.startswith(f"divergence {fingerprint}")
    assert "lists all (1 more are unreadable)" in said("show", "0000", code=1).stderr
    closed = said("close", "--all", "payment_decision", "--why", "mended")
    assert closed.stdout.startswith(f"closed: {fingerprint}")
    assert "it is not changed" in closed.stderr
    assert said("list", code=1).stdout == ""


# -- shrink ---------------------------------------------------------------------------------------


def test_the_smallest_case_is_shown_kept_and_saved(
    store: Store, tmp_path: Path, wrong: Callable[[DoneLie | None], None]
) -> None:
    fingerprint = fill(store)
    wrong(a_cent_more)
    found = as_json("shrink", fingerprint[:6], "--save", "kept")
    assert found["inputs"]["amount"] == "101"
    assert found["is_finished"]
    assert found["is_same_fingerprint"]
    (case,) = yaml.safe_load((tmp_path / found["saved"]).read_text(encoding="utf-8"))
    assert case["inputs"]["amount"] == {"decimal": "101"}
    assert Path(found["saved"]).parent == Path("kept")
    assert as_json("show", fingerprint)["small"] == found["case"]
    assert "the smallest case" in said("show", fingerprint).stdout
    again = said("shrink", fingerprint)
    assert "saved as tests/conformance/regressions/payment_decision_v1_01.yaml" in again.stdout
    assert as_json("list")[0]["status"] == "open"


def asks_more(**inputs: Any) -> dict[str, Any]:
    """A function that a team has, a cent above the node where the amount is large. What it is given it changes: nobody
    else may see that."""
    outcome = a_cent_more(inputs, Done(ENGINES["python"].load(node()).call(inputs), ())).outcome
    inputs.clear()
    if not isinstance(outcome, Returned):
        raise ValueError("no")
    return dict(outcome.value)


def test_what_differs_from_an_adopted_function_is_shrunk_by_asking_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked only where somebody says so: to call it once more may do what was to be done once."""
    monkeypatch.setattr(sys, "path", [*sys.path])  # it is looked for in the folder of the command, too
    inputs = {**INPUTS, "amount": Decimal("734.56")}
    answer = Returned(asks_more(**inputs))
    transcript = replace(recorded(ENGINES["python"].load(node()), inputs), outcome=answer)
    told = DirectEngine().load(node()).call_pathed(inputs, b"0" * 16)
    difference = Difference("outcome", "outputs.fee", "returned", "returned")
    report = Disagreement(difference, PathNote(told.path, (), "returned"), told.fingerprint, transcript, told.outcome)
    found = divergence_of(report, node(), False, NOON, ("__main__:asks_more", "interp"))
    put(store, KEY, happened_of(report, found))
    hint = f"`vesper divergences shrink {found.fingerprint} --against MODULE:FUNCTION` shrinks it to the smallest case"
    assert hint in said("show", found.fingerprint).stdout
    assert "--against MODULE:FUNCTION names the function" in said("shrink", found.fingerprint, code=1).stderr
    name = "tests.unit.cli.test_divergences:asks_more"
    small = as_json("shrink", found.fingerprint, "--against", name)
    assert small["inputs"]["amount"] == "101"
    assert small["is_same_fingerprint"]
    assert (small["odd"], list(small["answers"])) == (name, ["python", "interp", name])
    (case,) = yaml.safe_load(small["case"])
    assert case["against"] == name
    unknown = said("shrink", found.fingerprint, "--against", "tests.unit.cli.test_divergences:none", code=2)
    assert "has no `none`" in unknown.stderr


def test_a_function_has_no_part_in_what_differs_between_engines(store: Store) -> None:
    done = said("shrink", fill(store), "--against", "tests.unit.cli.test_divergences:asks_more", code=2)
    assert "--against applies to an adopted function; here python and direct differ" in done.stderr


def test_an_engine_that_is_right_is_said(store: Store, tmp_path: Path) -> None:
    fingerprint = fill(store)
    assert "they agree: the fault is mended" in said("shrink", fingerprint, code=1).stderr
    assert not (tmp_path / "tests").exists()


def test_a_node_that_means_something_else_now(
    store: Store, tmp_path: Path, wrong: Callable[[DoneLie | None], None]
) -> None:
    fingerprint = fill(store)
    wrong(a_cent_more)
    path = tmp_path / "nodes" / "payments" / "payment_decision_v1.vsp"
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace("0.029", "0.028"), encoding="utf-8")
    stderr = said("shrink", fingerprint, code=1).stderr
    assert "has changed since the divergence" in stderr
    assert "name the former file with --node-file" in stderr
    (tmp_path / "old.vsp").write_text(before, encoding="utf-8")
    assert as_json("shrink", fingerprint, "--node-file", "old.vsp")["inputs"]["amount"] == "101"
    path.unlink()
    assert "payment_decision_v1" in said("shrink", fingerprint, code=2).stderr


def test_a_fault_is_shown_shrunk_and_closed(store: Store, wrong: Callable[[DoneLie | None], None]) -> None:
    def breaks(inputs: Inputs, done: Done) -> Done:
        return replace(done, outcome=EngineFault("panicked: index 5 of 3")) if inputs.get("flagged") else done

    wrong(breaks)
    transcript = recorded(ENGINES["python"].load(node()), INPUTS)
    found = divergence_of(Fault("panicked: index 9 of 4", transcript), node(), False, NOON)
    put(store, KEY, Happened(EngineFaulted("engine"), found))
    assert as_json("shrink", found.fingerprint)["inputs"] == {"flagged": True}
    closed = said("close", found.fingerprint, "--why", "mended").stdout
    assert "the node is latched in python_only; release it with `vesper migrate resume payment_decision_v1`" in closed


def test_noise_is_listed_and_closed_and_cannot_be_shrunk(store: Store) -> None:
    transcript = recorded(ENGINES["python"].load(node()), INPUTS)
    difference = Difference("noise", "outputs.fee", "returned", "returned")
    report = Disagreement(difference, None, None, transcript, None)
    put(store, KEY, happened_of(report, divergence_of(report, node(), False, NOON)))
    (listed,) = as_json("list")
    assert listed["kind"] == "noise"
    assert "an engine differs from itself" in said("show", listed["fingerprint"]).stdout
    assert "one engine that differs from itself" in said("shrink", listed["fingerprint"], code=1).stderr
    assert as_json("close", listed["fingerprint"], "--why", "a cache")["open"] == 0


# -- sensitive nodes ------------------------------------------------------------------------------


def charges_more(_inputs: Inputs, done: Done) -> Done:
    assert isinstance(done.outcome, Returned)
    return replace(done, outcome=Returned({**done.outcome.value, "fee": Decimal(9)}))


def test_a_sensitive_execution_is_read_in_the_journal_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[DoneLie | None], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = node_text(sensitive=True)
    with a_place(tmp_path, "sqlite:journal.db") as place:
        execution = place.run(text, SECRET, "10.00")
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "charge_v1.vsp").write_text(text, encoding="utf-8")
    compiled_ = compiled_node(text)
    given = {"event_id": f"event {SECRET}", "customer": SECRET, "amount": Decimal("10.00")}
    answers = {"known": 15, "charge": {"id": f"ch_{SECRET}", "fee": Decimal("0.1"), "note": None}}
    now = datetime(2026, 11, 15, tzinfo=UTC)
    transcript = recorded(ENGINES["python"].load(compiled_), given, now, answers)
    difference = Difference("outcome", "outputs.fee", "returned", "returned")
    report = Disagreement(difference, None, 7, transcript, Returned({"receipt": SECRET}), execution)
    found = divergence_of(report, compiled_, True, NOON)
    (tmp_path / ".vesper").mkdir(exist_ok=True)
    store = open_store(f"sqlite:{tmp_path / STORE}")
    put(store, NodeKey("charge_v1", "e" * 32), Happened(Diverged("", found.fingerprint), found))
    wrong(charges_more)
    shown = said("show", found.fingerprint)
    assert "the node is sensitive, and the journal has them" in shown.stdout
    assert " --reveal` shrinks it to the smallest case" in shown.stdout
    assert execution in shown.stdout
    refused = said("shrink", found.fingerprint, code=1)
    assert "--reveal reads them" in refused.stderr
    small = said("shrink", found.fingerprint, "--reveal")
    assert "not saved: the node is sensitive; give a folder with --save" in small.stdout
    assert not (tmp_path / "tests").exists()
    small_json = as_json("shrink", found.fingerprint, "--reveal", "--save", "kept")
    assert small_json["inputs"] == {"event_id": "", "customer": "", "amount": "0"}
    assert small_json["saved"] == "kept/charge_v1_01.yaml"
    for each in (shown, refused, said("list"), said("show", found.fingerprint, "--format", "json")):
        assert SECRET not in each.output
    assert as_json("show", found.fingerprint)["small"] is None
    store.close()
    assert SECRET.encode() not in b"".join(each.read_bytes() for each in (tmp_path / ".vesper").iterdir())
    (tmp_path / "journal.db").rename(tmp_path / "elsewhere.db")
    assert "there is no journal at" in said("shrink", found.fingerprint, "--reveal", code=1).stderr


# -- close ----------------------------------------------------------------------------------------


def test_who_closes_says_why(store: Store) -> None:
    fingerprint = fill(store)
    assert "--why" in said("close", fingerprint, code=2).stderr
    found = as_json("close", fingerprint[:6], "--why", "mended in 0.2.1", "--by", "ann")
    assert (found["status"], found["by"], found["why"], found["open"]) == ("closed", "ann", "mended in 0.2.1", 0)
    assert "was already closed by ann: mended in 0.2.1" in said("close", fingerprint, "--why", "x", code=1).stderr
    assert "closed by ann: mended in 0.2.1" in said("show", fingerprint).stdout
    again, note = seen("150.00")
    put(store, KEY, Happened(Diverged(note.name, fingerprint), again))
    (listed,) = as_json("list")
    assert (listed["count"], listed["status"]) == (3, "open")


def test_all_of_a_node_are_closed_at_once(store: Store) -> None:
    fingerprint = fill(store)
    other, note = seen("900.00")
    put(
        store,
        KEY,
        Happened(Diverged(note.name, "f" * len(fingerprint)), replace(other, fingerprint="f" * len(fingerprint))),
    )
    for arguments in ([], [fingerprint, "--all", "payment_decision_v1"]):
        refused = said("close", *arguments, "--why", "x", code=2).stderr
        assert "name a FINGERPRINT, or a node with --all NODE" in refused
    closed = as_json("close", "--all", "payment_decision", "--why", "one cause, mended")
    assert [each["open"] for each in closed] == [1, 0]
    assert {each["status"] for each in as_json("list", "--all")} == {"closed"}
    refused = said("close", "--all", "payment_decision", "--why", "x", code=1).stderr
    assert "has no open divergence" in refused


# -- the page -------------------------------------------------------------------------------------


def test_the_page_shows_what_happens(store: Store, wrong: Callable[[DoneLie | None], None]) -> None:
    """Every block of the page with a command in it, one after the other in one folder."""
    assert fill(store).startswith("fa38")
    wrong(a_cent_more)
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```text\n(\$ .*?)^```$", text, re.MULTILINE | re.DOTALL)
    commands = [command for block in blocks for command in parse_session(block)]
    assert {command.text.split()[2] for command in commands} == {"list", "show", "shrink", "close"}
    for command in commands:
        words = re.findall(r"'[^']*'|\S+", command.text)
        done = invoke(*(word.strip("'") for word in words[1:]))
        printed = "\n".join(line.rstrip() for line in done.output.rstrip("\n").split("\n"))
        pattern = "\n".join(map(_pattern, command.expected))
        assert re.fullmatch(pattern, printed), f"`{command.text}` printed\n{printed}"
