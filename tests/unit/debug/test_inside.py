"""Breakpoints inside called nodes, and changes and effects requested by an editor."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.web import FakeStripe
from tests.unit.debug.subjects import PAYMENT, ROOT, session, transcript
from tests.unit.debug.test_services import INPUTS, charges, host, stripe  # noqa: F401  # fixtures
from vesper.cli.debug.dap_server import launcher, worlds
from vesper.debug.breakpoints import BadBreakpoint
from vesper.debug.dap.adapter import Adapter
from vesper.debug.session import StopReason
from vesper.host.host import Host

CHECKOUT = "nodes/orders/checkout_v1.vsp"


@pytest.mark.parametrize(
    "text",
    [
        "step:paid/call_stripe_api", "step:call_stripe_api", "payment_handler_v1.vsp:86", "state_transition:*->paid",
        "effect:http",
    ],
)  # fmt: skip
def test_a_breakpoint_in_a_called_node_stops_there(text: str) -> None:
    found = session(CHECKOUT)
    found.add_breakpoint(text)
    moved = found.resume(from_start=True)
    assert moved.why is StopReason.BREAKPOINT
    assert [each.text for each in moved.breakpoints] == [text], "as whoever set it calls it"
    (inner,) = moved.inside
    assert inner.compiled.node.node_id == "payment_handler_v1"
    step = "settle" if text.startswith("state") else "call_stripe_api"
    assert inner.stop_of(inner.leader).path == step
    assert inner.prefix == "paid/"
    assert inner.sides[1].marks == inner.sides[0].marks, "on both engines"
    assert found.stop_of(found.leader).path == "paid", "its caller stands at the call"
    assert inner.resume().why is StopReason.END
    found.leave_call()
    assert found.resume().why is StopReason.END


def test_at_the_prompt_it_is_as_after_into() -> None:
    of = session(CHECKOUT)
    of.add_breakpoint("step:paid/record")
    told = transcript(of, "where", "out", runs=True)
    assert "into payment_handler_v1\nstopped by `step:paid/record`" in told
    assert "#0 python  paid/record (database_write)" in told
    assert "#1 python  paid (call_node payment_handler_v1)" in told
    assert "back in checkout_v1" in told


def test_a_step_that_no_node_has_is_refused_by_name() -> None:
    found = session(CHECKOUT)
    for text in ("step:paid/nobody", "step:nobody/record", "nobody_v1.vsp:3", "step:price/record"):
        with pytest.raises(BadBreakpoint):
            found.add_breakpoint(text)
    assert found.breakpoints == []


class Editor:
    """A client that stores all messages."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.events: list[dict[str, Any]] = []

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        told = self._adapter.handle({"type": "request", "seq": 1, "command": command, "arguments": arguments})
        self.events = [each for each in told if each["type"] == "event"]
        return next(each for each in told if each["type"] == "response")

    def frame(self) -> str:
        return str(self.ask("stackTrace", threadId=1)["body"]["stackFrames"][0]["name"])

    def scope(self, name: str) -> int:
        scopes = self.ask("scopes", frameId=1000)["body"]["scopes"]
        return next(int(each["variablesReference"]) for each in scopes if each["name"] == name)

    def values(self, name: str) -> dict[str, str]:
        listed = self.ask("variables", variablesReference=self.scope(name))["body"]["variables"]
        return {each["name"]: each["value"] for each in listed}


def test_an_editor_has_breakpoints_in_two_files() -> None:
    editor = Editor(Adapter(launcher(None, ROOT / "nodes")))
    outer, inner = str(ROOT / CHECKOUT), str(ROOT / PAYMENT)
    assert editor.ask("launch", node=outer)["success"]
    for path, line in ((outer, 55), (inner, 86)):
        (point,) = editor.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": line}])["body"][
            "breakpoints"
        ]
        assert point["verified"], point
    editor.ask("configurationDone")
    editor.ask("continue", threadId=1)
    assert editor.frame() == "checkout_v1: total (line 55)"
    editor.ask("continue", threadId=1)
    assert editor.frame() == "payment_handler_v1: call_stripe_api (line 85)"
    assert editor.events == []
    editor.ask("continue", threadId=1)
    assert editor.frame() == "checkout_v1: end"


def test_an_answer_can_be_changed_but_not_a_computed_value() -> None:
    editor = Editor(Adapter(launcher(str(ROOT / PAYMENT), ROOT / "nodes")))
    assert editor.ask("launch", breakOn=["step:record"], stopOnEntry=False)["success"]
    editor.ask("configurationDone")
    assert editor.frame() == "payment_handler_v1: record (line 110)"
    other = '{id: "ch_77", status: "pending"}'
    done = editor.ask("setVariable", variablesReference=editor.scope("Steps"), name="call_stripe_api", value=other)
    assert done["success"], done
    assert editor.frame() == "payment_handler_v1: record (line 110)", "it came to the same place again"
    assert "ch_77" in editor.values("Steps")["call_stripe_api"]
    assert editor.values("About to call")["bind.transaction_id"] == '"ch_77"'
    for name, value in (("call_stripe_api", "3"), ("nobody", "1")):
        refused = editor.ask("setVariable", variablesReference=editor.scope("Steps"), name=name, value=value)
        assert not refused["success"], name
    assert "ch_77" in editor.values("Steps")["call_stripe_api"], "what is refused changes nothing"
    editor = Editor(Adapter(launcher(str(ROOT / CHECKOUT), ROOT / "nodes")))
    assert editor.ask("launch", breakOn=["step:judged"], stopOnEntry=False)["success"]
    editor.ask("configurationDone")
    refused = editor.ask("setVariable", variablesReference=editor.scope("Steps"), name="total", value="1")
    assert refused["message"] == "`total` is computed: change the values that it is computed from"


@pytest.mark.parametrize("by", ["launch", "option"])
def test_an_editor_performs_effects_only_on_request(by: str, stripe: FakeStripe, tmp_path: Path) -> None:  # noqa: F811
    config = tmp_path / "vesper.toml"
    given = {"node": str(ROOT / PAYMENT), "inputs": INPUTS, "breakOn": ["step:record"], "stopOnEntry": False}
    with ExitStack() as stack:
        quiet = Editor(Adapter(launcher(None, ROOT / "nodes"), worlds(stack, False, config)))
        assert quiet.ask("launch", **given)["success"]
        quiet.ask("configurationDone")
        assert charges(stripe) == 0
        is_live = by == "option"
        adapter = Adapter(launcher(None, ROOT / "nodes", is_live), worlds(stack, is_live, config))
        editor = Editor(adapter)
        wrong = {**given, "breakOn": ["step:nobody"], **({"live": True} if by == "launch" else {})}
        assert not editor.ask("launch", **wrong)["success"]
        assert editor.ask("launch", **{**wrong, "breakOn": ["step:call_stripe_api", "step:record"]})["success"]
        editor.ask("configurationDone")
        assert charges(stripe) == 0, "it stands before the call"
        editor.ask("continue", threadId=1)
        assert charges(stripe) == 1
        editor.ask("stepBack", threadId=1)
        editor.ask("continue", threadId=1)
        assert charges(stripe) == 1, "going back performs nothing again"
        refused = editor.ask("setVariable", variablesReference=editor.scope("Inputs"), name="amount", value="1")
        assert "effects were performed" in refused["message"]
        ran = adapter.close()
        assert ran is not None
        assert ran.outcome.kind == "limit_hit", "it was left before its end, and the journal says so"


def test_divergence_breakpoints_of_an_editor_need_two_engines() -> None:
    editor = Editor(Adapter(launcher(str(ROOT / PAYMENT), ROOT / "nodes")))
    refused = editor.ask("launch", comparative=False, breakOn=["divergence"])
    assert "needs two engines" in refused["message"]
    assert editor.ask("launch", comparative=False)["success"]
    told = editor.ask("setExceptionBreakpoints", filters=["contract_violation", "divergence"])
    assert [each["verified"] for each in told["body"]["breakpoints"]] == [True, False], "editors ask for both unasked"


def test_a_live_launch_needs_its_own_inputs(stripe: FakeStripe, tmp_path: Path) -> None:  # noqa: F811
    config = tmp_path / "vesper.toml"
    given = {"node": str(ROOT / PAYMENT), "live": True, "stopOnEntry": True}
    with ExitStack() as stack:
        adapter = Adapter(launcher(None, ROOT / "nodes"), worlds(stack, False, config))
        editor = Editor(adapter)
        refused = editor.ask("launch", **given, inputs={"amount": 5})
        assert "order_id: missing, user_id: missing; `live` does not use the first case" in refused["message"]
        answered = editor.ask("launch", **given, inputs=INPUTS, failures={"call_stripe_api": "timeout"})
        assert "`live` performs effects" in answered["message"]
        assert not (tmp_path / "journal.db").exists(), "nothing was begun"
        assert editor.ask("launch", **given, case="a declined card")["success"], "a case that is named gives its inputs"
        ran = adapter.close()
        assert ran is not None
        assert ran.outcome.kind == "limit_hit"
    assert charges(stripe) == 0


def test_live_and_a_recorded_run_do_not_go_together(host: Host) -> None:  # noqa: F811
    with ExitStack() as stack:
        editor = Editor(Adapter(launcher(None, ROOT), worlds(stack, True, None)))
        golden = str(ROOT / "tests" / "unit" / "trace" / "goldens" / "format_1_effects.json")
        refused = editor.ask("launch", trace=golden, reveal=True)
        assert (refused["success"], "omit one of them" in refused["message"]) == (False, True)


def test_an_editor_is_shown_where_to_give_answers() -> None:
    editor = Editor(Adapter(launcher(str(ROOT / PAYMENT), ROOT / "nodes")))
    given = {"case": "a declined card", "inputs": {"idempotency_key": "k-9"}}  # one more request follows with this key
    assert editor.ask("launch", **given)["success"]
    editor.ask("configurationDone")
    editor.ask("continue", threadId=1)
    told = [each["body"]["output"] for each in editor.events if each["event"] == "output"]
    assert "add it to the launch arguments: `answers` or `failures`, by step" in "".join(told)
