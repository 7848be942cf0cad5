"""Terminal output: founding sessions, forms of --break-on, every width, scripted use.

The transcripts are files of this folder; `make update` rewrites them.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.goldens import Golden
from tests.unit.debug.subjects import DRAWN, PAYMENT, ROOT, session, subject, transcript
from tests.unit.debug.test_breakpoints import lying
from vesper.cli.main import vesper
from vesper.debug.commands import Commands
from vesper.language.diagnostics.excerpt import display_width

HERE = Path(__file__).parent / "transcripts"
REFUND = "nodes/payments/refund_v1.vsp"
CHECKOUT = "nodes/orders/checkout_v1.vsp"


def test_the_drawn_session_of_the_founding_document(golden: Golden) -> None:
    text = transcript(session(DRAWN), "step", "continue")
    golden.check(HERE / "founding.txt", text)
    for line in (
        "Comparative Debugging Session",
        "========================================",
        "PYTHON RUNTIME",
        "Location: validate_request",
        "  amount: 99.99",
        '  user_id: "user_123"',
        "  user.balance: 500.00",
        "Location: call_stripe_api",
        "About to call:",
    ):
        assert line in text


def test_payment_handler_stops_at_validate_request_and_at_call_stripe_api(golden: Golden) -> None:
    found = session(PAYMENT)
    found.add_breakpoint("step:validate_request")
    found.add_breakpoint("step:call_stripe_api")
    text = transcript(found, "continue", "print amount * 100", "where", "list", "back", "reverse-continue", runs=True)
    golden.check(HERE / "payment_handler.txt", text)


def test_the_four_forms_of_break_on(golden: Golden) -> None:
    told = []
    for text, found in (
        ("contract_violation", session(DRAWN, None, amount=Decimal("600.00"))),
        (
            "state_transition:paid->refunded",
            session(REFUND, "without an amount all that is left, and the order is refunded"),
        ),
        ("input.amount > 10000", session(PAYMENT, None, amount=Decimal(20000))),
        ("divergence", lying(88, lambda _: {"id": "ch_2", "status": "succeeded"}).session()),
    ):
        found.add_breakpoint(text)
        told.append(f"--break-on '{text}'\n\n{transcript(found, 'diff', runs=True)}")
    golden.check(HERE / "break_on.txt", "\n".join(told))


def test_the_end_says_whether_a_breakpoint_was_hit() -> None:
    commands = Commands(session(PAYMENT))
    commands.run("break step:record")
    assert "stopped by `step:record`" in commands.run("continue")
    assert "the execution has ended; no further breakpoint was hit" in commands.run("continue")
    commands = Commands(session(PAYMENT))
    commands.run("break input.amount > 10000")
    assert "the execution has ended; no breakpoint was hit" in commands.run("continue")


def test_a_called_node_is_gone_into_and_left(golden: Golden) -> None:
    found = session(CHECKOUT)
    found.add_breakpoint("step:paid")
    golden.check(HERE / "into.txt", transcript(found, "into", "where", "out", runs=True))


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(width: int, golden: Golden) -> None:
    found = session(PAYMENT)
    found.add_breakpoint("step:record")
    text = transcript(found, runs=True, width=width)
    assert max(map(display_width, text.splitlines())) <= width
    squeezed = re.sub(r"[\s|]+", "", text)
    assert "INSERTINTOtransactions" in squeezed
    golden.check(HERE / f"width_{width}.txt", text)


def test_differences_are_marked_with_and_without_colours() -> None:
    found = lying(67, lambda _: "payment_failed").session()
    found.resume()
    found.goto(type(found.position)(6))
    plain = transcript(found)
    (line,) = [each for each in plain.splitlines() if "≠" in each]
    assert 'begin: "pending"' in line
    assert 'begin: "payment_failed"' in line
    coloured = Commands(found, None, lambda: 80, lambda text, kind: f"<{kind}>{text}</>").begin(runs=False)
    assert [each for each in coloured if each.startswith("<differs>")] == [f"<differs>{line}</>"]


def test_help_lists_every_command_and_an_unknown_one_is_close_to_some() -> None:
    commands = Commands(session(DRAWN))
    listed = "\n".join(commands.run("help"))
    for word in ("step", "next", "into", "out", "continue", "back", "reverse-continue", "break", "watch", "print",
                 "where", "list", "diff", "help"):  # fmt: skip
        assert f"\n  {word}" in f"\n{listed}"
    assert commands.run("contineu") == ["`contineu` is not a command; did you mean `continue`?"]
    for times in ("x", "0", "-1", "²"):
        assert commands.run(f"step {times}") == [f"`{times}` is not a count; write a whole number from 1"]
    assert commands.run("delete ²")[0] == "no breakpoint `²`"
    narrow = Commands(session(DRAWN), None, lambda: 60).run("help")
    assert max(map(display_width, narrow)) <= 60
    assert commands.run("") == []
    commands.run("break step:call_stripe_api")
    commands.run("watch validate_request")
    assert commands.run("break") == ["1  step:call_stripe_api", "2  watch validate_request"]
    assert commands.run("delete 1") == ["deleted step:call_stripe_api"]
    assert commands.run("delete 7")[0] == "no breakpoint `7`"


# -- the command ----------------------------------------------------------------------------------


def debug(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(vesper, ["debug", *arguments], input=stdin)


def test_commands_from_stdin_from_a_file_and_from_options_are_the_same(tmp_path: Path) -> None:
    node = str(ROOT / DRAWN)
    (tmp_path / "commands").write_text("# a comment\nstep\nquit\nstep\n", encoding="utf-8")
    typed = debug(node, "--comparative", stdin="step\nquit\n")
    from_file = debug(node, "--comparative", "--commands", str(tmp_path / "commands"))
    given = debug(node, "--comparative", "-x", "step", "-x", "quit")
    assert typed.exit_code == from_file.exit_code == given.exit_code == 0
    assert typed.output == from_file.output == given.output
    assert "(sir-db) step" in typed.output
    assert "\x1b" not in typed.output


def test_commands_that_are_no_text_are_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "commands").write_bytes(b"step\n\xff\n")
    done = debug(str(ROOT / DRAWN), "--commands", str(tmp_path / "commands"))
    assert (done.exit_code, "the file is not UTF-8 text" in done.output) == (2, True)
    assert "Location" not in done.output


@pytest.mark.parametrize(
    "arguments, code, told",
    [
        (["debug", str(ROOT / DRAWN)], 0, "Location: "),
        (["debug", "--dap"], 1, "use --port"),
        (["replay", str(ROOT / "tests" / "unit" / "trace" / "goldens" / "format_1_pure.json")], 0, "(replay)"),
    ],
)
def test_a_closed_standard_input_ends_the_session(arguments: list[str], code: int, told: str, tmp_path: Path) -> None:
    """Standard input is closed, as under cron, not only empty."""
    command = [sys.executable, "-c", "import os, sys; os.close(0); os.execv(sys.argv[1], sys.argv[1:])", sys.executable]
    done = subprocess.run(
        [*command, "-m", "vesper", *arguments], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, told in done.stdout + done.stderr) == (code, True), done.stderr


def test_one_engine_inputs_and_answers_of_the_command_line() -> None:
    answer = 'call_stripe_api={"id": "ch_9", "status": "pending"}'
    given = ["-i", "amount=7", "--answer", answer, "--break-on", "step:record"]
    done = debug(str(ROOT / PAYMENT), "--engine", "interp", *given, "-x", "print call_stripe_api.id", "-x", "continue")
    assert done.exit_code == 0, done.output
    assert '"ch_9"' in done.output
    assert "DIRECT RUNTIME" in done.output
    assert "PYTHON RUNTIME" not in done.output
    assert 'status: "pending"' in done.output


@pytest.mark.parametrize(
    "arguments, code, told",
    [
        (["--break-on", "input.amount > 'x'"], 1, "^"),
        (["--break-on", "step:call_strip_api"], 1, "did you mean `call_stripe_api`?"),
        (["--case", "nobody"], 2, "has no case `nobody`"),
        (["-i", "amont=1"], 2, "did you mean `amount`?"),
        (["-i", "amount=much"], 1, "amount"),
        (["--answer", "nobody=1"], 2, "no step `nobody` makes a request"),
        (["--answer", "call_stripe_api={"], 2, "as JSON"),
        (
            ["--answer", 'call_stripe_api={"id": 3}'],
            2,
            'as JSON, not `{"id": 3}`: id: wrong_type, status: missing',
        ),
        (["--answer", 'record="one"'], 2, 'as JSON, not `"one"`: wrong_type'),
        (["--fail", "call_stripe_api=late"], 2, "it can fail with timeout, unavailable, http_NNN, bad_response"),
        (["--break-on", "divergence"], 1, "start with --comparative to run both"),
        (["--comparative", "--engine", "python"], 2, "omit --engine"),
        (["--trace", "x"], 2, "omit the others"),
        (["--live", "--fail", "call_stripe_api=timeout"], 2, "omit --answer and --fail"),
        (["--live", "--answer", "call_stripe_api={}"], 2, "omit --answer and --fail"),
        (["--live"], 1, "order_id: missing"),
        (["--live", "-i", "amount=5"], 1, "--live does not use the first case"),
        (["--list"], 2, "omit NODE and --trace"),
        (["--reveal"], 2, "it requires --trace"),
        (["--dap", "--engine", "interp", "--width", "70"], 2, "omit --engine, --width"),
    ],
)
def test_invalid_options_are_reported_and_nothing_runs(arguments: list[str], code: int, told: str) -> None:
    done = debug(str(ROOT / PAYMENT), *arguments)
    assert done.exit_code == code, done.output
    assert told in done.output
    assert "Location" not in done.output


def test_without_a_node_a_breakpoint_is_for_running_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vesper.toml").write_text("", encoding="utf-8")
    assert debug("--list").output == "no breakpoints\n"
    done = debug("--break-on", "contract_violation", "--break-on", "input.amount > 10000")
    assert done.exit_code == 0, done.output
    assert debug("--list").output.splitlines() == ["breakpoint  contract_violation", "breakpoint  input.amount > 10000"]
    assert debug("--clear").exit_code == 0
    assert debug("--list").output == "no breakpoints\n"
    assert debug().exit_code == 2


@pytest.mark.parametrize(
    "arguments, code, told",
    [
        (["--break-on", "input.amount >"], 1, "^"),
        (["--break-on", "input.amount > 'x'"], 1, "between decimal and string"),
        (["--break-on", "effect:nothing"], 1, "there is no effect `nothing`"),
        (["--break-on", "state_transition:paid"], 1, "`*` is any state"),
        (["--break-on", "contract_violation", "--break-on", "step:call_strip_api"], 1, "`call_stripe_api`"),
        (["--break-on", " "], 2, "needs a breakpoint"),
        (["--break-on", "divergence", "--comparative", "-x", "step"], 2, "omit --comparative, --execute"),
    ],
)
def test_a_breakpoint_that_no_node_can_meet_is_not_set(
    arguments: list[str], code: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "payment_handler_v1.vsp").write_bytes((ROOT / PAYMENT).read_bytes())
    done = debug(*arguments)
    assert (done.exit_code, told in done.output) == (code, True), done.output
    assert debug("--list").output == "no breakpoints\n"


def test_a_breakpoint_that_fits_one_of_the_nodes_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes").mkdir()
    for node in (CHECKOUT, PAYMENT):
        (tmp_path / "nodes" / Path(node).name).write_bytes((ROOT / node).read_bytes())
    (tmp_path / "nodes" / "broken_v1.vsp").write_text("node_id: 3\n", encoding="utf-8")
    assert debug("--break-on", " step:call_stripe_api ").exit_code == 0
    assert debug("--list").output == "breakpoint  step:call_stripe_api\n"


def test_a_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = debug("--port", port)
    assert done.exit_code == 1
    assert f"port {port} of 127.0.0.1: " in done.output
    assert "choose another --port" in done.output


def test_a_session_of_one_engine_has_one_column() -> None:
    text = transcript(subject(DRAWN, None, [session(DRAWN).engines[0]]).session(), "diff")
    assert "|" not in text
    assert "`diff` needs two engines" in text


@pytest.mark.parametrize("given", [["-x", "contineu"], ["-x", "break nowhere at all", "-x", "quit"]])
def test_a_script_with_a_refused_command_exits_with_an_error(given: list[str]) -> None:
    node = str(ROOT / "nodes/payments/payment_decision_v1.vsp")
    done = debug(node, "--engine", "interp", *given)
    assert done.exit_code == 1, done.output
    assert debug(node, "--engine", "interp", "-x", "continue").exit_code == 0
