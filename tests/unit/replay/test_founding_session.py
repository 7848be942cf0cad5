"""The founding document's replay session: a timeout, modified, performed and applied as a fix.

The provider runs on loopback. The transcript is a golden.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.goldens import Golden
from tests.support.journalled import invoke
from tests.support.payments import ORDER, Shop
from tests.support.web import Got, Wire
from vesper.cli.traces.open_traces import traces_of
from vesper.engines.outcome import Failed
from vesper.engines.registry import ENGINES
from vesper.replay.rerun import replay
from vesper.replay.session import Session
from vesper.replay.shell import Shell, ShellOptions
from vesper.storage.write_file import replace_text

GOLDENS = Path(__file__).parent / "goldens"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with Shop(tmp_path, monkeypatch) as found:
        yield found


def session(shop: Shop, execution: str, lines: list[str]) -> str:
    """Return the output of a live session with the typed lines, on the scaled clock."""
    said: list[str] = []
    typed = iter(lines)

    def read(prompt: str) -> str | None:
        line = next(typed, None)
        said.append(f"{prompt}{line or ''}".rstrip())
        return line

    with traces_of(shop.config) as traces:
        opened = Session.open(traces.find(execution), traces=traces, open_host=shop.live_host)
        shell = Shell(
            opened, read, said.append, lambda: shop.node.relative_to(shop.folder), replace_text,
            ShellOptions(is_live=True, scale=shop.scale),
        )  # fmt: skip
        shell.print_opening()
        shell.loop()
    return "\n".join(said) + "\n"


def test_the_founding_session(shop: Shop, golden: Golden) -> None:
    shop.answers_after(45)
    ran = shop.pay()
    assert isinstance(ran.outcome, Failed)
    assert ran.outcome.code == "timeout"
    asked = len(shop.stripe.got)
    assert asked == 3  # one per attempt of the step's retry
    with traces_of(shop.config) as traces:
        before = traces.find(ran.execution).to_bytes()
    text = shop.node.read_text("utf-8")

    said = session(shop, ran.execution, ["modify step 3", "timeout 30s -> 60s", "y", "y", "diff"])

    # About 45 seconds on the scaled clock; a busy machine may take longer.
    took = re.search(r"Response: 200 OK \((\d+)s\)", said)
    assert took is not None, said
    assert 44 <= int(took[1]) < 60
    shown = re.sub(r"\((\d+)s\)", "(45s)", said, count=1)
    shown = re.sub(r"(Response of \w+: .+) \(\S+\)", r"\1 (…)", shown)
    shown = re.sub(r"Timestamp: .*", "Timestamp: 2025-01-08 14:23:15", _ID.sub("trace_id_12345", shown))
    shown = re.sub(r"(original|now)( +)[0-9a-f]{12}\n", r"\1\2(a hash)\n", shown)
    golden.check(GOLDENS / "founding_session.txt", shown)
    # One more request under a new key; the order is paid, the node is fixed, the trace is unchanged.
    assert len(shop.stripe.got) == asked + 1
    assert shop.stripe.got[-1].headers["idempotency-key"].startswith("replay ")
    assert shop.rows() == [(ORDER, "succeeded")]
    assert shop.node.read_text("utf-8") == text.replace("timeout: 30s", "timeout: 60s")
    with traces_of(shop.config) as traces:
        assert traces.find(ran.execution).to_bytes() == before


def test_nothing_is_performed_without_consent_and_nothing_is_written_without_yes(shop: Shop) -> None:
    shop.answers_after(45)
    ran = shop.pay()
    asked, text = len(shop.stripe.got), shop.node.read_bytes()
    said = session(shop, ran.execution, ["modify step 3", "timeout 60s", "n"])
    assert "nothing was performed" in said
    assert "may have happened the first time" in said
    assert len(shop.stripe.got) == asked
    shop.answers_after(0)
    said = session(shop, ran.execution, ["modify 3 timeout 60s", "y", "n"])
    assert "Success! Apply fix? [y/N] n" in said
    assert "not applied" in said
    assert shop.node.read_bytes() == text


def test_interrupting_a_performed_run_reports_its_state(shop: Shop) -> None:
    shop.stripe.drop_answers = 3
    ran = shop.pay()
    text = shop.node.read_bytes()

    def interrupt(got: Got, wire: Wire) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        wire.wait(60)

    shop.stripe.answer = interrupt  # type: ignore[method-assign]
    done = invoke("replay", ran.execution, "--set", "3.timeout=60s", "--live", "--yes", "--apply")
    assert done.exit_code == 1
    told = re.search(r"interrupted: how far execution (\S+) came, `vesper journal show \1` says", done.stderr)
    assert told is not None, done.stderr
    assert invoke("journal", "show", told[1]).exit_code == 0
    assert shop.node.read_bytes() == text


def test_live_from_the_command_line(shop: Shop) -> None:
    shop.stripe.drop_answers = 3  # the charge is made, but the connection ends without a response
    ran = shop.pay()
    assert isinstance(ran.outcome, Failed)
    asked = len(shop.stripe.got)
    refused = invoke("replay", ran.execution, "--set", "3.timeout=60s", "--live", answer="n\n")
    assert (refused.exit_code, len(shop.stripe.got)) == (1, asked)
    done = invoke("replay", ran.execution, "--set", "3.timeout=60s", "--live", "--yes", "--format", "json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)["again"]
    assert [each["origin"] for each in said["exchanges"]] == ["recorded", "recorded", "live", "live", "live"]
    assert len(shop.stripe.got) == asked + 1
    # It is a separate journalled execution that names its origin and can be replayed.
    kept = json.loads(invoke("traces", "show", said["trace_id"], "--format", "json").stdout)
    assert kept["origin"]["trace_id"] == ran.execution
    assert kept["divergence"] is None
    with traces_of(shop.config) as traces:
        found = traces.find(said["trace_id"])
        assert all(replay(found, engine).difference is None for engine in ENGINES)
    assert len(shop.stripe.got) == asked + 1
    assert invoke("journal", "verify").exit_code == 0
