"""A live session answers waits itself: a sleep at once, others by the person; the journal has the answers."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.nodes import ROOT, compiled
from vesper.config.settings import read_config
from vesper.debug.responses import Live, ManualAnswers, Unanswered
from vesper.engines.engine import Blocked
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.journal.entry import Kind
from vesper.verify.inputs.responses import NOON

NODE = compiled(ROOT / "tests" / "conformance" / "programs" / "waits_33_v1.vsp")
DUE = NOON + timedelta(days=9)
INPUTS = {"event_id": "e1", "days": 1, "due_at": DUE, "grace": timedelta(hours=1)}
_TOML = """
[[grants]]
nodes = ["waits_33"]
allow = ["clock.*", "signals.*", "interrupts.*"]

[journal]
dsn = "sqlite:{folder}/journal.db"
"""


def test_a_live_session_never_sleeps(tmp_path: Path) -> None:
    (tmp_path / "vesper.toml").write_text(_TOML.format(folder=tmp_path), encoding="utf-8")
    manual = ManualAnswers(NODE)
    with Host(read_config(tmp_path / "vesper.toml")) as host:
        world = Live(host, NODE, "python", INPUTS, NOON, manual)
        execution = ENGINES["python"].load(NODE).start(INPUTS, NOON)
        step = execution.advance(())
        while isinstance(step, Blocked):
            (request,) = step.requests
            if request.effect != "sleep" and not manual.answer(request):
                with pytest.raises(Unanswered, match="answer JSON"):
                    world.answer(request)
                if request.path == "approval":
                    manual.set_answer("approval", '{"approved": true, "note": null}')
                else:
                    manual.set_answer(request.path, '"seen"')
            step = execution.advance((world.answer(request),))
        ran = world.finish(step.outcome)
        assert ran is not None
        entries = [each.entry for each in host.journal.read(ran.execution).entries]
    woken = [each.body["value"] for each in entries if each.kind is Kind.RESULT and each.effect == "sleep"]
    assert woken == [DUE, *(DUE + timedelta(days=days) for days in (1, 3, 6))]
    assert [each.path for each in entries if each.kind is Kind.INTENT] == []
