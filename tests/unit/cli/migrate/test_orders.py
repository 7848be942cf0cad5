"""What a person says to the controller, through `vesper migrate`; and the history of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.journalled import invoke
from tests.unit.migration.support.hook import Hook
from tests.unit.migration.support.remote_answers import FEE, MINUTE_US, NOON_US, Told
from vesper.cli.migrate import controller_commands as migrate_orders
from vesper.journal.moments import time_text
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import Close, EngineFaulted, NodeState, Noisy, PinTo, Settings
from vesper.migration.stores import ledger, sqlite_store
from vesper.migration.stores.kill_scope import inherited_kill
from vesper.migration.stores.store import WHOLE, NodeKey

OTHER = NodeKey("fee_v1", "e" * 64)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    monkeypatch.chdir(tmp_path)
    found = Told(tmp_path)
    yield found
    found.store.close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    found = Hook()
    yield found
    found.close()


def state(told: Told, key: NodeKey = FEE) -> NodeState:
    return ledger.load(told.store, key, Settings())


def said(*arguments: str) -> list[str]:
    done = invoke("migrate", *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def refused(*arguments: str, code: int = 1) -> str:
    done = invoke("migrate", *arguments)
    assert done.exit_code == code, done.output
    return done.stderr


# -- one node -------------------------------------------------------------------------------------


def test_a_node_is_taken_down_one_mode_or_further(told: Told) -> None:
    told.batch(runs=10_900)
    told.batch(runs=1)
    assert state(told).mode is Mode.DUAL_VERIFY
    assert said("demote", "fee", "--why", "slow", "--by", "ann") == [
        "fee_v1: dual_verify → canary_direct; evidence restarts, attempt 2"
    ]
    assert said("demote", "fee", "--to", "shadow_direct", "--why", "slower") == [
        "fee_v1: canary_direct → shadow_direct; evidence restarts, attempt 3"
    ]
    assert "pin the node to python_only or kill it" in refused("demote", "fee", "--why", "more")
    assert "canary_direct is not lower" in refused("demote", "fee", "--to", "canary_direct", "--why", "more")
    assert "Missing option '--why'" in refused("demote", "fee", code=2)


def test_an_approval_does_not_stand_for_evidence(told: Told, tmp_path: Path) -> None:
    (tmp_path / "vesper.toml").write_text('[migration]\napprovals = ["canary_direct"]\n', encoding="utf-8")
    told = Told(tmp_path, Settings(frozenset({Mode.CANARY_DIRECT})))
    told.batch(runs=100)
    assert "canary_direct lacks 106 more distinct runs that agree" in refused("promote", "fee", "--why", "x")
    told.batch(runs=110)
    assert state(told).mode is Mode.SHADOW_DIRECT
    assert "Missing option '--why'" in refused("promote", "fee", code=2)
    assert state(told).mode is Mode.SHADOW_DIRECT
    assert said("promote", "fee", "--why", "looked at the paths") == ["fee_v1: shadow_direct → canary_direct"]
    assert "looked at the paths" in told.store.history(FEE)[-1].text
    found = json.loads(invoke("migrate", "promote", "fee", "--why", "x", "--format", "json").stdout)
    assert (found["mode"], found["decisions"]) == ("canary_direct", [])
    assert found["refused"].startswith("dual_verify lacks 10,604 more")


def test_a_pin_holds_a_node_and_is_taken_off(told: Told) -> None:
    told.batch(runs=300)
    lines = said("pin", "fee", "shadow_direct", "--for", "7d", "--why", "a freeze")
    assert lines[0].startswith("fee_v1: pinned to shadow_direct until 20")
    assert lines[1] == "fee_v1: canary_direct → shadow_direct"
    pin = state(told).pin
    assert pin is not None
    assert pin.why == "a freeze"
    assert said("unpin", "fee")[0] == "fee_v1: the pin to shadow_direct is removed"
    assert state(told).mode is Mode.CANARY_DIRECT
    assert "there is no pin" in refused("unpin", "fee")
    assert "dual_verify is higher than" in refused("pin", "fee", "dual_verify", "--for", "1h", "--why", "x")


def test_a_pin_that_is_over_is_taken_off_all_the_same(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has told the store anything since its time was over: the order finds it, and holds."""
    for style in ((), ("--format", "json")):
        told.batch(runs=300)
        until_us = told.now_us + MINUTE_US
        monkeypatch.setattr(migrate_orders, "now_us", lambda: told.now_us + 5 * MINUTE_US)
        told.batch(FEE, PinTo(Mode.SHADOW_DIRECT, until_us, "ann", "a freeze"))
        done = invoke("migrate", "unpin", "fee", "--why", "over", *style)
        assert (done.exit_code, done.stderr) == (0, ""), done.output
        if style:
            found = json.loads(done.stdout)
            assert (found["refused"], found["mode"]) == (None, "canary_direct")
            assert [each["kind"] for each in found["decisions"]] == ["pin_ended", "changed"]
        else:
            assert done.stdout.splitlines() == [
                f"fee_v1: the pin had expired already: it was to shadow_direct until {time_text(until_us)}",
                "fee_v1: shadow_direct → canary_direct",
            ]
    assert "there is no pin" in refused("unpin", "fee", "--why", "over")


@pytest.mark.parametrize("length", ["7", "0s", "400d", "ever", "1 week"])
def test_a_pin_has_an_end(told: Told, length: str) -> None:
    told.batch(runs=1)
    text = refused("pin", "fee", "shadow_direct", "--for", length, "--why", "x", code=2)
    assert f"`{length}` is not a duration up to 366 days: write `90m`, `12h` or `7d`" in text


def test_a_kill_reaches_every_epoch_and_a_release_only_one(told: Told) -> None:
    told.batch(runs=300)
    told.batch(OTHER, runs=10)
    lines = said("kill", "fee", "--why", "fire", "--by", "ann")
    assert f"fee_v1 ({'e' * 12}): shadow_direct → python_only; evidence restarts, attempt 2" in lines
    assert f"fee_v1 ({'f' * 12}): canary_direct → python_only; evidence restarts, attempt 2" in lines
    assert [state(told, key).mode for key in (FEE, OTHER)] == [Mode.PYTHON_ONLY] * 2
    again = said("kill", "fee", "--why", "fire", "--epoch", "f")
    assert again[0].startswith("fee_v1: no change: it is in python_only, latched: kill by ann at 20")
    assert said("resume", "fee", "--epoch", "f", "--why", "mended") == [
        "fee_v1: released: kill",
        "fee_v1: python_only → shadow_direct",
        f"other epochs are still latched: {'e' * 12}; select one with --epoch",
    ]
    assert "there is no latch to release" in refused("resume", "fee", "--epoch", "f", "--why", "mended")
    assert [state(told, key).mode for key in (FEE, OTHER)] == [Mode.SHADOW_DIRECT, Mode.PYTHON_ONLY]


def test_a_kill_holds_in_later_epochs_unless_it_names_one(told: Told) -> None:
    told.batch(runs=300)
    said("kill", "fee", "--why", "a bad definition", "--epoch", "f")
    assert inherited_kill(told.store, OTHER, Settings()) is None
    said("kill", "fee", "--why", "fire", "--by", "ann")
    assert inherited_kill(told.store, OTHER, Settings()) is not None
    said("resume", "fee", "--why", "mended")
    assert inherited_kill(told.store, OTHER, Settings()) is None


def test_orders_as_json(told: Told) -> None:
    told.batch(runs=300)
    found = json.loads(invoke("migrate", "kill", "fee", "--why", "fire", "--by", "ann", "--format", "json").stdout)
    assert (found["node"], found["epoch"], found["mode"]) == ("fee_v1", FEE.epoch, "python_only")
    assert [each["kind"] for each in found["decisions"]] == ["latched", "changed"]
    assert (found["decisions"][1]["who"], found["decisions"][1]["why"]) == ("ann", "fire")
    done = invoke("migrate", "unpin", "fee", "--format", "json")
    assert (done.exit_code, json.loads(done.stdout)["refused"]) == (1, "there is no pin")


def test_a_kill_reaches_what_can_be_reached(told: Told, tmp_path: Path) -> None:
    """The epoch that runs must not go on because an old one cannot be read."""
    told.batch(OTHER, runs=10)
    told.batch(runs=300)
    spoil(tmp_path, OTHER)
    done = invoke("migrate", "kill", "fee", "--why", "fire")
    assert done.exit_code == 1
    assert f"fee_v1 ({'f' * 12}): latched: kill" in done.stdout.splitlines()
    assert f"fee_v1 ({'e' * 12}): its state is unreadable, so only Python runs there: " in done.stderr
    assert state(told).mode is Mode.PYTHON_ONLY
    done = invoke("migrate", "kill", "fee", "--why", "fire", "--format", "json")
    spoilt, read = json.loads(done.stdout)
    assert (done.exit_code, spoilt["epoch"], spoilt["mode"]) == (1, OTHER.epoch, None)
    assert "format" in spoilt["problem"]
    assert (read["epoch"], read["mode"], read["problem"]) == (FEE.epoch, "python_only", None)


def spoil(folder: Path, key: NodeKey) -> None:
    with closing(sqlite3.connect(folder / ".vesper" / "migration.db")) as file, file:
        file.execute("UPDATE vesper_control_nodes SET state = '{}' WHERE epoch = ?", (key.epoch,))


def test_after_a_kill_the_epoch_that_runs_is_resumed(told: Told) -> None:
    """All epochs were told of the kill; only one of them is in use, whatever its hash is."""
    told.batch(FEE, runs=300)
    told.batch(OTHER, runs=300)
    said("kill", "fee", "--why", "fire")
    assert said("resume", "fee", "--why", "out")[0] == "fee_v1: released: kill"
    assert [state(told, key).mode for key in (FEE, OTHER)] == [Mode.PYTHON_ONLY, Mode.SHADOW_DIRECT]


@pytest.mark.parametrize("mode", [Mode.PYTHON_ONLY, Mode.SHADOW_DIRECT])
def test_a_pin_that_outlives_the_release_is_said(told: Told, mode: Mode) -> None:
    told.batch(runs=300)
    said("pin", "fee", mode.value, "--for", "1h", "--why", "a freeze", "--by", "ann")
    said("kill", "fee", "--why", "fire")
    lines = said("resume", "fee", "--why", "out")
    assert lines[0] == "fee_v1: released: kill"
    assert lines[-1].startswith(f"fee_v1: the pin to {mode.value} still applies, until 20")
    assert lines[-1].endswith(", by ann: a freeze; `vesper migrate unpin fee_v1` removes it")
    assert len(lines) == (2 if mode is Mode.PYTHON_ONLY else 3)


def test_an_order_from_elsewhere_passes_nobody_by_who_must_approve(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = Settings(frozenset({Mode.CANARY_DIRECT}))
    told = Told(tmp_path, asks)
    told.batch(runs=300)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    there = ("--store", "sqlite:../.vesper/migration.db")
    said("pin", "fee", "shadow_direct", "--for", "1h", "--why", "x", *there)
    assert said("unpin", "fee", *there) == ["fee_v1: the pin to shadow_direct is removed"]
    assert ledger.load(told.store, FEE, asks).mode is Mode.SHADOW_DIRECT
    assert said("promote", "fee", "--why", "x", *there) == ["fee_v1: shadow_direct → canary_direct"]


def test_what_changed_beside_a_refusal_is_said(told: Told) -> None:
    told.batch(runs=300)
    said("pin", "fee", "python_only", "--for", "1h", "--why", "x")
    assert said("unpin", "fee")[1] == "fee_v1: python_only → shadow_direct"
    done = invoke("migrate", "unpin", "fee")
    assert (done.exit_code, done.stdout) == (1, "fee_v1: shadow_direct → canary_direct\n")
    assert done.stderr == "Error: fee_v1: there is no pin\n"


def test_there_is_nothing_below_python(told: Told) -> None:
    told.batch(runs=1)
    said("kill", "fee", "--why", "fire")
    assert "the node is in python_only, and there is no lower mode" in refused("demote", "fee", "--why", "x")


def test_others_are_told_of_what_takes_a_node_down(told: Told, tmp_path: Path, hook: Hook) -> None:
    (tmp_path / "vesper.toml").write_text(f'[migration.alerts]\nwebhook = "{hook.url}"\n', encoding="utf-8")
    told.batch(runs=300)
    said("demote", "fee", "--why", "slow", "--by", "ann")
    said("kill", "fee", "--why", "fire", "--by", "ann")
    said("kill", "--all", "--why", "more fire", "--by", "ann")
    said("resume", "fee", "--why", "out")
    posted = [hook.next() for _ in range(3)]
    assert [(each["kind"], each["node"], each["who"]) for each in posted] == [
        ("fell", "fee_v1", "ann"),
        ("latched", "fee_v1", "ann"),
        ("stopped", None, "ann"),
    ]
    assert hook.got.empty()


def test_a_webhook_that_cannot_be_posted_to_stops_no_kill(told: Told, tmp_path: Path) -> None:
    (tmp_path / "vesper.toml").write_text('[migration.alerts]\nwebhook = "https://"\n', encoding="utf-8")
    told.batch(runs=300)
    done = invoke("migrate", "kill", "fee", "--why", "fire")
    assert (done.exit_code, state(told).mode) == (0, Mode.PYTHON_ONLY)
    assert "warning: no alert was posted: migration.alerts.webhook" in done.stderr


@pytest.mark.parametrize(
    "arguments, code, text",
    [
        (["kill", "--why", "x"], 2, "name a NODE, or give --all"),
        (["kill", "fee", "--all", "--why", "x"], 2, "name a NODE, or give --all"),
        (["resume", "--all", "--epoch", "f", "--why", "x"], 2, "--epoch selects an epoch of one node"),
        (["kill", "fe_v1", "--why", "x"], 1, "did you mean `fee_v1`?"),
        (["kill", "fee", "--why", " "], 2, "'--why': write 1 to 2,000 printable characters"),
        (["resume", "--all", "--why", "x"], 1, "the nodes are not stopped"),
        (["promote", "fee", "--why", "x", "--store", "sqlite:none.db"], 1, "there is no store at"),
        (["history", "--epoch", "f"], 2, "--epoch selects an epoch of one node"),
    ],
)
def test_what_cannot_be_done(told: Told, arguments: list[str], code: int, text: str) -> None:
    told.batch(runs=1)
    assert text in refused(*arguments, code=code)


# -- all nodes ------------------------------------------------------------------------------------


def test_all_nodes_are_stopped_and_go_on(told: Told) -> None:
    told.batch(runs=300)
    assert said("kill", "--all", "--why", "fire", "--by", "ann")[0].startswith("every node runs on Python only")
    switch = ledger.read_kill_switch(told.store)
    assert switch is not None
    assert (switch.who, switch.why) == ("ann", "fire")
    assert state(told).mode is Mode.CANARY_DIRECT
    assert json.loads(invoke("migrate", "resume", "--all", "--why", "out", "--format", "json").stdout) == {
        "all": "resumed"
    }
    assert ledger.read_kill_switch(told.store) is None
    lines = said("history")
    assert lines[0] == "all nodes"
    assert lines[1].endswith("all nodes stopped, by ann: fire")
    assert lines[2].split("  ")[-1].startswith("all nodes resumed, by ")
    assert ledger.verify_history(told.store.history(WHOLE)) is None


def test_all_nodes_are_stopped_once(told: Told) -> None:
    """Who stopped them first, and why, is what the next one has to know."""
    told.batch(runs=300)
    said("kill", "--all", "--why", "fire", "--by", "ann")
    done = invoke("migrate", "kill", "--all", "--why", "smoke", "--by", "bob")
    assert (done.exit_code, "stopped, since 20" in done.stderr, "by ann: fire" in done.stderr) == (
        0,
        True,
        True,
    )
    switch = ledger.read_kill_switch(told.store)
    assert switch is not None
    assert (switch.who, len(told.store.history(WHOLE))) == ("ann", 1)


def test_a_switch_that_cannot_be_read_can_be_turned_on(told: Told, tmp_path: Path) -> None:
    told.batch(runs=1)
    said("kill", "--all", "--why", "fire")
    spoil(tmp_path, WHOLE)
    assert "the switch for all nodes" in refused("resume", "--all", "--why", "out")
    said("kill", "--all", "--why", "fire again", "--by", "bob")
    switch = ledger.read_kill_switch(told.store)
    assert switch is not None
    assert switch.who == "bob"


def test_stopping_all_nodes_of_a_store_without_any_is_doubtful(told: Told) -> None:
    told.store.secret()  # it is there, and empty
    done = invoke("migrate", "kill", "--all", "--why", "fire")
    assert done.exit_code == 0
    assert "warning: no node was routed with " in done.stderr


def _damaged(file: Path) -> Iterator[None]:
    file.write_bytes(b"no database at all, " * 500)
    yield


def _locked(file: Path) -> Iterator[None]:
    with closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@pytest.mark.parametrize("trouble", [_damaged, _locked])
@pytest.mark.parametrize(
    "which, where",
    [(["fee_v1"], "[migration.nodes.fee_v1]"), (["--all"], "[migration.nodes.NODE] of every NODE")],
)
def test_what_stops_nodes_where_the_store_is_away_is_said(
    told: Told,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Callable[[Path], Iterator[None]],
    which: list[str],
    where: str,
) -> None:
    monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.05)
    (tmp_path / "vesper.toml").write_text('[migration]\nhold = "90s"\n', encoding="utf-8")
    told.batch(runs=300)
    told.store.close()
    with contextmanager(trouble)(tmp_path / ".vesper" / "migration.db"):
        lines = refused("kill", *which, "--why", "fire").splitlines()
        assert "migration.db" in lines[0]
        assert lines[1].startswith("the command may not have reached the store")
        assert "after 90 s (`hold`)" in lines[2]
        assert f'`max_mode = "python_only"` under {where}' in lines[3]
        elsewhere = refused("kill", *which, "--why", "fire", "--store", "sqlite:.vesper/../.vesper/migration.db")
        assert "after the `hold` of their configuration" in elsewhere
        assert "max_mode" not in refused("resume", *which, "--why", "fire")


# -- history --------------------------------------------------------------------------------------


def a_long_story(told: Told) -> None:
    told.batch(runs=300)
    told.diverge()
    told.batch(FEE, Close("0dd0dd0dd0dd0dd0", "ann", "fixed"))
    told.batch(FEE, EngineFaulted("it broke"))
    told.batch(FEE, Noisy("a1", "outputs.total"))
    said("resume", "fee", "--why", "mended", "--by", "ann")
    said("pin", "fee", "python_only", "--for", "1h", "--why", "a freeze", "--by", "ann")
    said("unpin", "fee", "--by", "ann")


def test_a_history_says_all_and_checks_it(told: Told) -> None:
    a_long_story(told)
    lines = said("history", "fee")
    text = "\n".join(lines)
    assert lines[0] == f"fee_v1, epoch {'f' * 12}"
    for part in (
        "    2  2026-11-15 12:00:00Z  shadow_direct → canary_direct  evidence, by controller: the evidence carries",
        "300 distinct runs agreed, 0 divergences in 300 comparisons, 0 without a result; lower bound 0.96517, ",
        "divergence 0dd0dd0dd0dd0dd0: path",
        "divergence 0dd0dd0dd0dd0dd0 closed, by ann: fixed",
        "latched: engine_fault, by controller: it broke",
        "noise a1: an engine differs from itself at outputs.total",
        "released: engine_fault, by ann: mended",
        "pinned to python_only until",
        "the pin to python_only is removed, by ann: taken off",
        "python_only → shadow_direct  unpinned, by ann: taken off",
        "; restarts as attempt 2",
    ):
        assert part in text, text
    total = len(told.store.history(FEE))
    assert lines[-1] == f"{total} lines: no line was changed"
    found: list[dict[str, Any]] = json.loads(invoke("migrate", "history", "fee", "--format", "json").stdout)
    assert [each["number"] for each in found[0]["lines"]] == list(range(1, total + 1))
    assert found[0]["problem"] is None
    assert found[0]["lines"][1]["seen_clean"] == 300


def test_a_history_since_then(told: Told) -> None:
    a_long_story(told)
    text = "\n".join(said("history", "fee", "--since", "2026-11-15T12:03:00Z"))
    assert "engine_fault" in text
    assert "the evidence carries" not in text
    assert "lines: no line was changed" in text


def test_the_newest_of_a_history(told: Told) -> None:
    a_long_story(told)
    total = len(told.store.history(FEE))
    assert total > 2
    (found,) = json.loads(invoke("migrate", "history", "fee", "--limit", "2", "--format", "json").stdout)
    assert [each["number"] for each in found["lines"]] == [line.number for line in told.store.history(FEE)][-2:]
    assert f"{total} lines: no line was changed" in "\n".join(said("history", "fee", "--limit", "2"))


def test_a_history_that_was_changed_names_the_line(told: Told, tmp_path: Path) -> None:
    a_long_story(told)
    number = next(each.number for each in told.store.history(FEE) if '"closed"' in each.text)
    connection = sqlite3.connect(tmp_path / ".vesper" / "migration.db")
    with connection:
        changed = connection.execute(
            "UPDATE vesper_control_history SET line = replace(line, 'ann', 'eve') WHERE number = ?", (number,)
        )
        assert changed.rowcount == 1
    connection.close()
    done = invoke("migrate", "history")
    assert done.exit_code == 1
    assert f"line {number} is not what was written, or the one before it is not" in done.stderr
    assert "no line was changed" not in done.stdout
    done = invoke("migrate", "history", "fee", "--format", "json")
    assert (done.exit_code, f"line {number}" in json.loads(done.stdout)[0]["problem"]) == (1, True)


def test_there_is_no_history_yet(told: Told) -> None:
    told.batch(runs=1)
    assert said("history", "fee") == ["no decisions yet"]
    assert told.now_us > NOON_US
