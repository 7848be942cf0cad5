"""`vesper status`: what it says of nodes in a real store, in every width, and of what is wrong with it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest

from tests.support.journalled import invoke
from tests.unit.migration.support.places import KINDS, fresh_dsn
from tests.unit.migration.support.remote_answers import FEE, MINUTE_US, NOON_US, NOTE, ODD, Told
from vesper.cli.migrate import open_store as migration_open
from vesper.cli.output.terminal import escaped_output
from vesper.cli.status import command as status
from vesper.cli.status.command import _watch
from vesper.compiler import compile_file
from vesper.engines.direct_engine import DirectProgram
from vesper.engines.registry import ENGINES
from vesper.journal.owner import this_owner
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.path_words import path_words, point_words
from vesper.migration.compare.paths import PathNote
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import EngineFaulted, Noisy, PinTo, RunLost, Settings, Timed, Unknown
from vesper.migration.router.epoch import epoch_of
from vesper.migration.router.spool import Spool
from vesper.migration.stores import ledger, sqlite_store
from vesper.migration.stores.store import Batch, Happened, NodeKey, SeenOnPath, open_store

PYTHON = "shadow_direct/python"
PAY = NodeKey("pay_v2", "a" * 64)
SOURCE = """\
node_id: fee_v1
type: function
intent: A fee on large amounts
inputs:
  amount: decimal
outputs:
  success:
    fee: decimal
flow:
  - step: fee
    operation: compute
    value: "IF amount > 100 THEN amount * 0.02 ELSE 0"
  - operation: return
    success: [fee]
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setattr(sqlite_store, "is_volatile", lambda _path: None)
    found = Told(tmp_path)
    for module in (migration_open, status):
        monkeypatch.setattr(module, "now_us", lambda: found.now_us)
    yield found
    found.store.close()


def shown(*arguments: str) -> list[str]:
    done = invoke("status", *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def as_json(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads("\n".join(shown(*arguments, "--format", "json")))
    return found


# -- all nodes ------------------------------------------------------------------------------------


def test_looking_creates_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("status")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no node has been routed yet: there is no store at" in done.stderr
    assert 'engine="auto"' in done.stderr
    found = json.loads(invoke("status", "--format", "json").stdout)
    assert (found["nodes"], found["killed"], found["written"], found["warnings"]) == ([], None, None, [])
    assert found["totals"]["requests"] == 0
    for arguments in (["status", "fee_v1"], ["status", "--store", "sqlite:elsewhere.db"], ["migrate", "history"]):
        done = invoke(*arguments)
        assert done.exit_code == 1
        assert "there is no store at" in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_empty_store_says_what_to_do(told: Told) -> None:
    told.store.secret()
    assert any(line.startswith("no node has been routed yet: the store is empty.") for line in shown())
    assert as_json()["nodes"] == []


def test_every_node_has_a_row(told: Told) -> None:
    told.batch(runs=218, served={"shadow_direct/python": 300})
    told.batch(PAY, EngineFaulted("it broke"), served={"canary_direct/direct": 60, "canary_direct/python": 40})
    lines = shown()
    assert lines[0] == f"store {told.store.name}, written 1 min 0 s ago"
    assert lines[2].split() == ["node", "mode", "confidence", "n", "open", "held", "needed", "for", "promotion"]
    assert lines[3].split(maxsplit=5) == [
        "fee_v1", "canary_direct", "0.95269", "218", "0", "10,596 more distinct runs that agree",
    ]  # fmt: skip
    assert lines[4].split(maxsplit=5)[:2] == ["pay_v2", "python_only"]
    assert lines[4].endswith("latched: engine_fault  the release of its latch by a person")
    requests = "400 requests, 75.0 % in shadow_direct, 25.0 % in canary_direct; the direct engine answered 15.0 %"
    assert lines[6:] == [
        "2 nodes: 1 python_only, 1 canary_direct",
        f"traffic of the last 24 hours: {requests}",
    ]


def test_a_narrow_terminal_gets_lines_of_its_own_for_each_node(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    told.batch(runs=218)
    told.batch(PAY, EngineFaulted("it broke"))
    monkeypatch.setenv("COLUMNS", "50")
    lines = shown("--store", "sqlite:.vesper/migration.db")
    assert "fee_v1  canary_direct" in lines
    assert "  confidence 0.95269  n 218  open 0" in lines
    assert "  10,596 more distinct runs that agree" in lines
    assert max(map(len, lines[2:])) <= 50


def test_the_last_column_is_wrapped_where_there_is_room_for_some_of_it(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    told.batch(runs=10)
    told.batch(FEE, Unknown(50))
    told.diverge()
    monkeypatch.setenv("COLUMNS", "90")
    lines = shown()
    first = next(at for at, line in enumerate(lines) if line.startswith("fee_v1 "))
    assert "1 open divergence to be closed" in " ".join(" ".join(lines[first : first + 3]).split())
    assert lines[first + 1].startswith(" " * 40)
    assert max(map(len, lines[2:])) <= 90


def test_only_the_epoch_that_was_written_last_is_shown(told: Told) -> None:
    newer = NodeKey("fee_v1", "e" * 64)
    told.batch(runs=5)
    told.batch(newer, runs=3)
    lines = shown()
    assert sum(line.startswith("fee_v1") for line in lines) == 1
    assert "1 older epoch not shown; --all-epochs shows them" in lines
    assert [each["epoch"] for each in as_json()["nodes"]] == [newer.epoch]
    both = shown("--all-epochs")
    assert "1 node in 2 epochs: 2 shadow_direct" in both
    told.batch(PAY, runs=1)
    assert [each["epoch"] for each in as_json("fee", "--all-epochs")["nodes"]] == [newer.epoch, FEE.epoch]
    assert any(line.startswith(f"fee_v1 ({'e' * 12})") for line in both)
    assert any(line.startswith(f"fee_v1 ({'f' * 12})") for line in both)


def test_a_state_that_cannot_be_read_hides_no_other(told: Told) -> None:
    told.batch(runs=5)
    told.batch(PAY, runs=5)
    told.store.transact(PAY, lambda transaction: transaction.put_state('{"format": 99}'))
    lines = shown()
    assert any("its state cannot be read: it has the format 99, and this Vesper reads 1" in line for line in lines)
    assert any(line.startswith("fee_v1") for line in lines)
    assert "2 nodes: 1 shadow_direct, 1 unreadable" in lines
    done = invoke("status", "pay_v2")
    assert (done.exit_code, "its state cannot be read" in done.stderr) == (1, True)


def test_the_switch_for_all_is_said_first(told: Told) -> None:
    told.batch(runs=5)
    ledger.kill_all(told.store, "ann", "fire", NOON_US)
    lines = shown()
    assert lines[1] == "STOPPED: every node runs on Python only, since 2026-11-15 12:00:00Z, by ann: fire"
    assert as_json()["killed"] == {"who": "ann", "why": "fire", "at": "2026-11-15T12:00:00.000000Z"}


def test_what_the_store_may_lose_is_said(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    told.batch(runs=5)
    monkeypatch.setattr(sqlite_store, "is_volatile", lambda _path: "it is a RAM disk")
    text = " ".join(" ".join(shown()).split())
    assert "the migration state may be lost with a restart: it is a RAM disk" in text
    assert len(as_json()["warnings"]) == 1


def test_what_a_killed_process_found_and_did_not_tell_is_said(told: Told, tmp_path: Path) -> None:
    told.batch(runs=5)
    folder = tmp_path / ".vesper" / "migration"
    child = os.fork()
    if child == 0:
        process = f"{this_owner()}+killed"
        Spool(folder, process).write(FEE, Batch(process, 1, (Happened(RunLost("r1")),)))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    living = Spool(folder, f"{this_owner()}+alive")
    living.write(FEE, Batch("alive", 1, (Happened(RunLost("r2")),)))
    said = "what was found by processes that are gone (1) is not in the store yet"
    assert said in " ".join(" ".join(shown()).split())
    assert [said in each for each in as_json("fee")["warnings"]] == [True]
    assert said in invoke("divergences", "list").stderr
    assert as_json("--store", "sqlite:.vesper/migration.db")["warnings"] == []
    (folder / "aside").mkdir()
    (folder / "aside" / "x.spool").write_bytes(b"?")
    next(folder.glob("*+killed.spool")).unlink()
    assert as_json()["warnings"] == [
        f"{folder / 'aside'}: what processes had found and nobody can read is kept here: look at it"
    ]
    living.close()


def test_totals_as_json(told: Told) -> None:
    told.batch(runs=5, served={"shadow_direct/python": 7})
    told.batch(FEE, served={"direct_only/direct": 3})
    totals = as_json()["totals"]
    assert totals["nodes"] == {mode.value: int(mode is Mode.SHADOW_DIRECT) for mode in Mode}
    assert totals["requests_by_mode"]["direct_only"] == 3
    assert totals["requests_by_engine"] == {"python": 7, "direct": 3}
    assert totals["requests"] == 10


def test_what_the_configuration_forbids_is_missing(told: Told, tmp_path: Path) -> None:
    told.batch(runs=218)
    (tmp_path / "vesper.toml").write_text('[migration.nodes.fee_v1]\nmax_mode = "canary_direct"\n', encoding="utf-8")
    assert any("a configuration that allows more than canary_direct" in line for line in shown())


def test_the_mode_that_is_shown_is_the_one_that_runs(told: Told, tmp_path: Path) -> None:
    """The evidence goes on to count; no process goes beyond what the configuration allows."""
    told.batch(runs=218)
    (tmp_path / "vesper.toml").write_text('[migration.nodes.fee_v1]\nmax_mode = "shadow_direct"\n', encoding="utf-8")
    lines = shown()
    assert lines[3].split()[:6] == ["fee_v1", "shadow_direct", "0.95269", "218", "0", "max_mode"]
    assert "1 node: 1 shadow_direct" in lines
    found = as_json()
    assert (found["nodes"][0]["mode"], found["nodes"][0]["mode_of_evidence"]) == ("shadow_direct", "canary_direct")
    assert found["totals"]["nodes"]["shadow_direct"] == 1
    mode = next(line for line in shown("fee") if line.split()[:1] == ["mode"])
    assert mode.split(maxsplit=1)[1] == (
        "shadow_direct, limited by `max_mode` of the configuration; its evidence allows canary_direct"
    )
    for style in ((), ("--format", "json")):
        done = invoke("migrate", "promote", "fee", "--why", "x", *style)
        assert done.exit_code == 1
        assert "`max_mode` of the configuration allows at most shadow_direct" in done.output


@pytest.mark.parametrize("kind", KINDS)
def test_in_every_kind_of_store(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    dsn = fresh_dsn(kind, request, tmp_path)
    with closing(open_store(dsn)) as store:
        batch = Batch("shop-1", 1, agreed={"p": SeenOnPath(frozenset(range(218)), 218)}, served={PYTHON: 218})
        ledger.apply(store, FEE, batch, Settings(), NOON_US)
        store.transact(FEE, lambda transaction: transaction.put_document("other", "text"))
        assert (store.document(FEE, "other"), store.document(FEE, "none"), store.document(PAY, "other")) == (
            "text", None, None,
        )  # fmt: skip
    found = as_json("--store", dsn)
    assert [(each["node"], each["mode"], each["clean"]) for each in found["nodes"]] == [
        ("fee_v1", "canary_direct", 218)
    ]
    assert found["written"] == "2026-11-15T12:00:00.000000Z"
    assert invoke("migrate", "kill", "fee", "--why", "fire", "--store", dsn).exit_code == 0
    assert as_json("fee", "--store", dsn)["mode"] == "python_only"
    history = invoke("migrate", "history", "fee", "--store", dsn)
    assert (history.exit_code, "4 lines: no line was changed" in history.stdout) == (0, True), history.output


# -- one node -------------------------------------------------------------------------------------


def test_one_node_in_full(told: Told) -> None:
    other = PathNote(bytes(8), (), "returned")
    told.batch(runs=218, served={"shadow_direct/python": 218})
    told.batch(FEE, runs=12, note=other)
    told.batch(FEE, PinTo(Mode.CANARY_DIRECT, told.now_us + 90 * MINUTE_US, "ann", "a freeze"))
    text = "\n".join(shown("fee"))
    for part in (
        f"fee_v1, epoch {'f' * 12}",
        "mode             canary_direct, since 2026-11-15 12:00:00Z",
        "confidence       0.95505, the lower bound of the share of runs that agree",
        "230 distinct runs that agree, 0 divergences, of 230 comparisons, besides 0 without a result; attempt 1",
        "for dual_verify  10,814 distinct runs that agree, by both of these:",
        "  Wilson         0.95505 of 0.999",
        "  e-process      e^0.21 of e^9.71",
        "the end of its pin; 10,584 more distinct runs that agree",
        "canary_direct, until 2026-11-15 13:32:00Z, by ann: a freeze",
        "2 paths, most evidence first\n  conditions are not shown: ",
        "  A  218: enough evidence\n     charge: ok; returned",
        "  B  12: 194 more on path B\n     returned",
        "2026-11-15 12:00:00Z  shadow_direct → canary_direct, by controller: the evidence carries canary_direct",
    ):
        assert part in text, text


def test_what_it_takes_to_go_back_is_said(told: Told) -> None:
    """Before it happens: whoever falls gives all of it back to Python at once."""
    served = {"direct_only/direct": 7_200_000, "direct_only/python": 72_000}
    told.batch(runs=5, served={"shadow_direct/python": 9})
    assert not any(line.split()[:1] == ["rollback"] for line in shown("fee"))
    assert as_json("fee")["rollback"] is None
    told.batch(FEE, *[Timed(500_000, 100_000)] * 19, served=served)
    text = " ".join(" ".join(shown("fee")).split())
    assert "rollback 7,200,000 requests that the direct engine answered in the busiest hour; the time of" in text
    told.batch(FEE, Timed(10**10, 10**10))  # one that waited for its turn moves nothing
    text = " ".join(" ".join(shown("fee")).split())
    assert (
        "rollback Python takes 1 processors for the 7,200,000 requests that the direct engine answered in the "
        "busiest hour, 500 µs each"
    ) in text
    assert as_json("fee")["rollback"] == {
        "requests_in_busiest_hour": 7_200_000, "python_ns": 500_000.0, "direct_ns": 100_000.0, "processors": 1.0,
    }  # fmt: skip


def test_one_node_with_trouble(told: Told) -> None:
    told.batch(runs=218)
    told.diverge()
    told.diverge()
    told.batch(FEE, Noisy("a1", "outputs.total"))
    told.batch(FEE, EngineFaulted("it broke"))
    text = "\n".join(shown("fee_v1"))
    for part in (
        "python_only, since 2026-11-15 12:04:00Z",
        "1 place to be closed in which",
        "noise              a1: an engine differs from itself at outputs.total",
        "latch              engine_fault, 2026-11-15 12:04:00Z, by controller: it broke",
        "the release of its latch by a person",
        "1 open divergence\n",
        f"  {ODD}  outputs.fee (value), 2 times",
    ):
        assert part in text, text
    found = as_json("fee_v1")
    assert found["mode"] == "python_only"
    assert found["latches"] == [
        {"reason": "engine_fault", "who": "controller", "why": "it broke", "at": "2026-11-15T12:04:00.000000Z"}
    ]
    assert [each["fingerprint"] for each in found["open_divergences"]] == [ODD]
    assert found["changes"][0]["after"] == "canary_direct"
    path = found["paths"][0]
    assert (path["path"], path["open"], path["letter"]) == (NOTE.name, 1, "A")


@pytest.mark.parametrize(
    "wanted, said",
    [
        ("fe_v1", "the store has no node `fe_v1`; did you mean `fee_v1`?"),
        ("zzzzzzzzzzz", "the store has no node `zzzzzzzzzzz`; `vesper status` lists the nodes"),
        ("pay", "`pay` has several versions in the store: name one of pay_v1, pay_v2"),
    ],
)
def test_a_node_that_is_not_there(told: Told, wanted: str, said: str) -> None:
    for key in (FEE, PAY, NodeKey("pay_v1", "b" * 64)):
        told.batch(key, runs=1)
    done = invoke("status", wanted)
    assert (done.exit_code, said in done.stderr) == (1, True), done.stderr


def test_a_setting_for_a_node_that_is_not_there_is_said(told: Told, tmp_path: Path) -> None:
    """A limit on a node whose name was misspelt limits nothing."""
    told.batch(FEE, runs=1)
    names = ["fee", "fee_v1", "fe_v1"]
    (tmp_path / "vesper.toml").write_text("".join(f"[migration.nodes.{each}]\n" for each in names), encoding="utf-8")
    warnings = [line for line in shown() if "[migration" in line]
    assert warnings == [
        "warning: [migration.nodes.fe_v1]: no node of this name was routed here; did you mean `fee_v1`?"
    ]


def test_a_node_is_named_by_its_file(told: Told, tmp_path: Path) -> None:
    told.batch(runs=20)
    told.batch(PAY, runs=20)
    (tmp_path / "anything.vsp").write_text(SOURCE, encoding="utf-8")
    assert as_json("anything.vsp")["node"] == "fee_v1"
    assert as_json("./anything.vsp")["node"] == "fee_v1"
    done = invoke("migrate", "history", "nodes/none.vsp")
    assert (done.exit_code, done.stderr) == (1, "Error: there is no file `nodes/none.vsp`\n")


def test_an_epoch_is_named_by_its_beginning(told: Told) -> None:
    told.batch(NodeKey("fee_v1", "ab12" + "0" * 60), runs=1)
    told.batch(NodeKey("fee_v1", "ab34" + "0" * 60), runs=1)
    assert as_json("fee", "--epoch", "ab12")["epoch"] == "ab12" + "0" * 60
    assert as_json("fee")["epoch"] == "ab34" + "0" * 60
    done = invoke("status", "fee", "--epoch", "ab")
    assert (done.exit_code, "several epochs of fee_v1 start with `ab`; it has" in done.stderr) == (1, True)
    assert "no epoch of fee_v1 starts with `zz`" in invoke("status", "fee", "--epoch", "zz").stderr


def test_conditions_are_in_the_words_of_the_source(told: Told, tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(SOURCE, encoding="utf-8")
    compiled, bag = compile_file(Path("nodes/fee_v1.vsp"))
    assert compiled is not None, [each.headline for each in bag.sorted()]
    key = NodeKey("fee_v1", epoch_of(compiled, Comparator(compiled).version))
    program = ENGINES["interp"].load(compiled)
    assert isinstance(program, DirectProgram)
    pathed = program.call_pathed({"amount": Decimal(250)}, b"k" * 16)
    note = PathNote(pathed.path, (), "returned")
    told.batch(key, runs=20, note=note)
    assert "     amount > 100: yes; returned" in shown("fee")
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(SOURCE.replace("0.02", "0.03"), encoding="utf-8")
    lines = shown("fee")
    assert any("conditions are not shown: nodes/fee_v1.vsp is of another epoch" in line for line in lines)
    assert "     returned" in lines
    failed = path_words(PathNote(b"", (), "failed overflow at 0"), compiled, ())
    assert failed[0].startswith("failed overflow at line 1")


def test_a_tolerance_for_nothing_hides_the_conditions_and_nothing_else(told: Told, tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "vesper.toml").write_text(
        '[migration.nodes.fee.tolerances.fe]\nabsolute = "0.01"\nversion = 1\nuntil = "2999-01-31"\nwhy = "a test"\n',
        encoding="utf-8",
    )
    told.batch(runs=20)
    lines = shown("fee")
    assert any(line.endswith("the tolerance for `fe`: there is no `fe`; there are fee") for line in lines), lines
    assert any(line.split()[:2] == ["mode", "shadow_direct"] for line in lines)


def test_a_tolerance_for_nothing_is_said_of_all_nodes(told: Told, tmp_path: Path) -> None:
    """Also where nothing was routed yet: with such a tolerance nothing can be."""
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(SOURCE, encoding="utf-8")
    config = tmp_path / "vesper.toml"
    config.write_text(
        "[migration.nodes.none.tolerances.x]\n"
        + (rest := 'absolute = "1"\nversion = 1\nuntil = 2999-01-31\nwhy = "x"\n')
        + f"[migration.nodes.fee.tolerances.fee]\n{rest}[migration.nodes.fee_v1.tolerances.fe]\n{rest}",
        encoding="utf-8",
    )
    text = "vesper.toml, [migration.nodes]: fee_v1: the tolerance for `fe`: there is no `fe`; there are fee"
    done = invoke("status")
    assert (done.exit_code, done.stderr.count("warning: "), f"warning: {text}" in done.stderr) == (0, 1, True)
    told.batch(runs=20)
    for arguments in ((), ("fee",)):
        assert any(text in line for line in shown(*arguments)), shown(*arguments)
        assert [each for each in as_json(*arguments)["warnings"] if "tolerance" in each] == [text]


def test_a_requirement_that_holds_is_said_to_hold() -> None:
    """A validation with an error is a branch on its opposite; a reader sees the text of the source."""
    compiled, _ = compile_file(Path("nodes/payments/payment_handler_v1.vsp"))
    assert compiled is not None
    program = ENGINES["interp"].load(compiled)
    assert isinstance(program, DirectProgram)
    required = [each for each in program.points() if "trim" in point_words(each, compiled)]
    words = {each.outcome: point_words(each, compiled) for each in required}
    assert words == {"false": "trim(order_id) == order_id: yes", "true": "trim(order_id) == order_id: no"}


# -- what is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (["--watch"], 2, "--watch needs a terminal"),
        (["--watch", "--format", "json"], 2, "--watch cannot be combined with --format json"),
        (["--epoch", "ab"], 2, "--epoch selects an epoch of one node: name the NODE"),
        (["fee", "--epoch", "ab", "--all-epochs"], 2, "--epoch and --all-epochs exclude each other"),
        (["--store", "mysql://x"], 1, "`mysql:` names no store"),
        (["--store", "postgresql://localhost:1/none"], 1, "localhost"),
        (["--store", "sqlite:broken.db"], 1, "broken.db"),
    ],
)
def test_what_cannot_be_done(told: Told, tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database" * 100)
    done = invoke("status", *arguments)
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr


def test_watching_goes_on_while_the_store_is_away(capsys: pytest.CaptureFixture[str]) -> None:
    painted: Iterator[str | click.ClickException] = iter(["first", click.ClickException("the store is away"), "third"])
    waits: list[int] = []

    def paint() -> str:
        found = next(painted)
        if isinstance(found, click.ClickException):
            raise found
        return found

    def wait() -> None:
        waits.append(1)
        if len(waits) == 3:
            raise KeyboardInterrupt

    with escaped_output():
        _watch(paint, wait)
    assert capsys.readouterr().out == "first\nerror: the store is away\nthird\n\n"


def test_watching_on_a_terminal(told: Told, tmp_path: Path) -> None:
    told.batch(runs=5)
    master, slave = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-m", "vesper", "status", "--watch"], stdout=slave, cwd=tmp_path, start_new_session=True
    )
    os.close(slave)
    text = b""
    while text.count(b"\x1b[H\x1b[2J") < 2:
        text += os.read(master, 65_536)
    run.send_signal(signal.SIGINT)
    assert run.wait(20) == 0
    os.close(master)
    assert text.count(b"fee_v1") >= 1
