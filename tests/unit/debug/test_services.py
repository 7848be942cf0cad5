"""Performed effects and breakpoints of running services, with a counting provider."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

import vesper as api
from tests.support.web import FakeStripe
from tests.unit.debug.subjects import LOADER, PAYMENT, ROOT, compiled_node
from vesper.api.run_captures import RunCaptures
from vesper.cli.main import vesper
from vesper.config.settings import config_from, read_config
from vesper.debug.responses import AnswerBook, Live, ManualAnswers, RunStopped
from vesper.debug.session import Session
from vesper.engines.outcome import Denied, LimitHit, Returned
from vesper.engines.registry import PAIR
from vesper.host.host import Host
from vesper.trace.armed_breakpoints import Armed
from vesper.verify.inputs.responses import NOON

API_KEY = "sk_test_0123456789abcdef"
INPUTS = {"order_id": "ord_1", "user_id": "cus_7", "amount": "99.99", "idempotency_key": "k-1"}
_TOML = """
[[grants]]
nodes = ["payment_handler"]
allow = ["database.*", "state.*", "network.*", "secrets.*"]

[providers.stripe]
base_url = "{url}"
allow_private_addresses = true
auth = {{header = "Authorization", value = "Bearer {{secret:stripe_api_key}}"}}

[databases.main]
dsn = "sqlite:{folder}/shop.db"

[journal]
dsn = "sqlite:{folder}/journal.db"
"""


@pytest.fixture
def stripe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStripe]:
    """A counting provider and a folder with a vesper.toml for it."""
    monkeypatch.setenv("VESPER_SECRET_STRIPE_API_KEY", API_KEY)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute(
            "CREATE TABLE transactions (transaction_id text PRIMARY KEY, order_id text, user_id text, amount text,"
            " status text, idempotency_key text UNIQUE, created_at text)"
        )
    with FakeStripe(api_key=API_KEY) as found:
        (tmp_path / "vesper.toml").write_text(_TOML.format(url=found.url, folder=tmp_path), encoding="utf-8")
        yield found


@pytest.fixture
def host(stripe: FakeStripe, tmp_path: Path) -> Iterator[Host]:
    with Host(read_config(tmp_path / "vesper.toml")) as found:
        yield found


def charges(stripe: FakeStripe) -> int:
    return len(stripe.charges)


def live(host: Host) -> tuple[Live, Session]:
    world = Live(host, compiled_node(PAYMENT), "python", INPUTS, NOON, ManualAnswers(compiled_node(PAYMENT)))
    session = Session(compiled_node(PAYMENT), list(PAIR.values()), INPUTS, NOON, AnswerBook(world), loader=LOADER)
    return world, session


def test_live_performs_an_effect_only_when_it_is_gone_past_and_once(host: Host, stripe: FakeStripe) -> None:
    world, session = live(host)
    session.add_breakpoint("step:call_stripe_api")
    session.resume(from_start=True)
    assert charges(stripe) == 0, "it stands before the call"
    session.step()
    assert charges(stripe) == 1
    for _ in range(4):
        session.back()
    session.resume()
    session.resume()
    assert charges(stripe) == 1, "going back and forth again performs nothing"
    ran = world.finish(session.leader.outcome)
    assert ran is not None
    assert isinstance(ran.outcome, Returned)
    assert session.divergence() is None
    assert isinstance(session.sides[1].outcome, Returned), "the direct engine was told the same"
    assert str(host.journal.read(ran.execution).entries[-1].entry.kind) == "END"


def test_a_live_session_that_is_left_ends_its_run(host: Host, stripe: FakeStripe) -> None:
    world, session = live(host)
    session.step()
    session.step()
    ran = world.finish(None)
    assert ran is not None
    assert ran.outcome == LimitHit("cancelled")
    assert charges(stripe) == 0


def test_a_live_session_runs_no_execution_but_its_own(host: Host, stripe: FakeStripe) -> None:
    """Other runs of the node on the same Host, of the application or abandoned, keep their program."""
    world, session = live(host)
    session.step()
    program = PAIR["python"].load(compiled_node(PAYMENT))
    prepared = host.prepare(compiled_node(PAYMENT), program, "python")
    assert type(prepared.program) is type(program)
    other = host.run(prepared, {**INPUTS, "order_id": "ord_9", "idempotency_key": "k-9"}, NOON)
    assert isinstance(other.outcome, Returned)
    ran = world.finish(None)
    assert ran is not None
    assert ran.outcome == LimitHit("cancelled")
    assert charges(stripe) == 1


def test_interrupting_a_performed_effect_reports_its_outcome(host: Host, stripe: FakeStripe) -> None:
    world, session = live(host)
    session.add_breakpoint("step:call_stripe_api")
    session.resume(from_start=True)
    request = session.leader.waits_for
    assert request is not None
    world._tasks.put(request)  # as `answer` does before Ctrl-C ends its wait
    ran = world.finish(None)
    assert ran is not None
    assert ran.outcome == LimitHit("cancelled")
    assert charges(stripe) == 1, "it had begun, and goes on to its result"
    kinds = [str(each.entry.kind) for each in host.journal.read(ran.execution).entries]
    assert kinds[-2:] == ["RESULT", "END"]


def test_live_without_a_grant_is_denied(tmp_path: Path) -> None:
    with Host(config_from({"journal": {"dsn": f"sqlite:{tmp_path / 'j.db'}"}}, tmp_path)) as bare:
        world, session = live(bare)
        session.resume()
        assert isinstance(session.leader.outcome, Denied)
        assert [type(side.outcome) for side in session.sides] == [Denied, Denied]
        with pytest.raises(RunStopped):
            world.answer(session.leader.requests[0])


def debug(*arguments: str) -> str:
    done = CliRunner().invoke(vesper, ["debug", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_goes_live_and_attaches_to_the_trace_of_that_run(
    stripe: FakeStripe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [part for name, value in INPUTS.items() for part in ("-i", f"{name}={value}")]
    done = debug(str(ROOT / PAYMENT), "--comparative", "--live", *given, "-x", "continue")
    assert charges(stripe) == 1
    execution = done.splitlines()[-1].removeprefix("execution ").partition(":")[0]
    hidden = CliRunner().invoke(vesper, ["debug", "--trace", execution])
    assert (hidden.exit_code, "--reveal" in hidden.output) == (1, True)
    again = debug("--trace", execution, "--reveal", "--comparative", "--break-on", "step:record", "-x", "continue")
    assert 'call_stripe_api.id: "ch_1"' in again
    assert charges(stripe) == 1, "a recorded run performs nothing"


def test_what_is_written_for_real_has_the_time_of_the_run_and_no_input_of_a_case(
    stripe: FakeStripe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [part for name in ("order_id", "user_id", "amount") for part in ("-i", f"{name}={INPUTS[name]}")]
    done = debug(str(ROOT / PAYMENT), "--live", *given, "-x", "continue")
    assert "idempotency_key: null" in done, "the first case has one, which nobody gave"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        ((written,),) = connection.execute("SELECT created_at FROM transactions").fetchall()
    assert datetime.fromisoformat(written) != compiled_node(PAYMENT).cases[0].now, "nor is it done at the time of one"


def test_leaving_a_live_session_cancels_the_run(
    stripe: FakeStripe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = debug(str(ROOT / PAYMENT), "--live", "--case", "a declined card", "-x", "step", "-x", "quit")
    assert done.splitlines()[-1].endswith(": limit hit: cancelled")
    assert charges(stripe) == 0


def test_a_breakpoint_of_a_running_service_stores_a_trace_without_stopping(
    host: Host, stripe: FakeStripe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    node = api.load(ROOT / PAYMENT, host=host)
    armed = Armed(tmp_path)
    looks = RunCaptures(host)
    host.after_run = looks.after_run
    assert node(**INPUTS).ok
    assert looks._worker is None, "without a breakpoint there is no thread"
    debug("--break-on", "input.amount > 10000", "--break-on", "state_transition:*->paid if amount == 7")
    looks.watch._next_poll = time.monotonic()
    assert node(**{**INPUTS, "order_id": "ord_2", "idempotency_key": "k-2", "amount": "50"}).ok
    big = node(**{**INPUTS, "order_id": "ord_3", "idempotency_key": "k-3", "amount": "20000"})
    seven = node(**{**INPUTS, "order_id": "ord_4", "idempotency_key": "k-4", "amount": "7"})
    looks.wait()
    assert [(each.trace_id, each.breakpoint) for each in armed.captured()] == [
        (big.trace_id, "input.amount > 10000"),
        (seven.trace_id, "state_transition:*->paid if amount == 7"),
    ]
    assert charges(stripe) == 4, "each was charged once"
    listed = debug("--list")
    assert str(big.trace_id) in listed
    text = debug("--trace", str(big.trace_id), "--reveal", "-x", "print amount")
    assert "20000" in text


def test_a_loaded_node_is_checked_against_breakpoints_by_default(host: Host, stripe: FakeStripe) -> None:
    node = api.load(ROOT / PAYMENT, host=host)
    assert node(**INPUTS).ok
    assert host.after_run is not None


def test_a_call_imports_the_debugger_only_for_a_breakpoint(stripe: FakeStripe, tmp_path: Path) -> None:
    script = f"""
import sys, vesper
with vesper.Host.from_file({str(tmp_path / "vesper.toml")!r}) as host:
    node = vesper.load({str(ROOT / PAYMENT)!r}, host=host)
    assert node(**{INPUTS!r}).ok
    assert not [each for each in sys.modules if each.startswith("vesper.debug")]
"""
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_what_ran_last_is_looked_at_before_the_host_is_closed(stripe: FakeStripe, tmp_path: Path) -> None:
    armed = Armed(tmp_path)
    armed.add(["input.amount > 10000"])
    with Host(read_config(tmp_path / "vesper.toml")) as host:
        big = api.load(ROOT / PAYMENT, host=host)(**{**INPUTS, "amount": "20000"})
    assert [each.trace_id for each in armed.captured()] == [big.trace_id]


def test_an_unreadable_breakpoint_file_is_logged_and_no_run_fails(
    host: Host, stripe: FakeStripe, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    armed = Armed(tmp_path)
    armed.breakpoints_path.parent.mkdir(exist_ok=True)
    armed.breakpoints_path.write_text("{", encoding="utf-8")
    node = api.load(ROOT / PAYMENT, host=host)
    assert node(**INPUTS).ok
    assert "`vesper debug --clear` removes it" in caplog.text
