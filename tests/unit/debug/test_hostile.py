"""Invalid messages, commands and widths: the debugger reports them or continues."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.unit.debug.subjects import DRAWN, PAYMENT, ROOT, compiled_node
from vesper.cli.debug.dap_server import launcher
from vesper.cli.main import vesper
from vesper.debug.columns import lay_out
from vesper.debug.dap.adapter import Adapter
from vesper.debug.dap.wire import WireError, read_message, write_message
from vesper.debug.responses import ManualAnswers
from vesper.debug.view import Row
from vesper.trace.armed_breakpoints import Armed, Capture, CapturesError


def launched() -> Adapter:
    adapter = Adapter(launcher(str(ROOT / DRAWN), ROOT))
    assert ask(adapter, "launch")["success"]
    return adapter


def ask(adapter: Adapter, command: str, **arguments: Any) -> dict[str, Any]:
    answered = adapter.handle({"type": "request", "seq": 1, "command": command, "arguments": arguments})
    return next(each for each in answered if each["type"] == "response")


@pytest.mark.parametrize(
    "command, arguments",
    [
        ("setBreakpoints", {"source": 3, "breakpoints": [{"line": 1}]}),
        ("setBreakpoints", {"source": {}, "breakpoints": [{"line": "x"}]}),
        ("setBreakpoints", {"source": {}, "breakpoints": [7]}),
        ("setFunctionBreakpoints", {"breakpoints": 1}),
        ("setVariable", {"variablesReference": 1, "name": "nobody", "value": "1"}),
        ("variables", {"variablesReference": float("inf")}),
        ("scopes", {"frameId": "top"}),
        ("stackTrace", {}),
        ("source", {"source": 1}),
        ("evaluate", {"expression": "\ud800", "frameId": 1000}),
        ("launch", {"node": str(ROOT), "inputs": [1]}),
        ("launch", {"trace": 1, "config": "/nowhere/vesper.toml"}),
        ("attach", {}),
        ("sing", {}),
    ],
)
def test_a_request_that_is_none_is_refused_and_the_session_stays(command: str, arguments: dict[str, Any]) -> None:
    adapter = launched()
    ask(adapter, "scopes", frameId=1000)
    refused = ask(adapter, command, **arguments)
    assert (refused["success"], bool(refused["message"])) == (False, True)
    assert ask(adapter, "stackTrace", threadId=1)["success"]


def test_requests_before_launch_are_refused() -> None:
    adapter = Adapter(launcher(None, ROOT))
    for command in ("configurationDone", "continue", "stepBack", "setFunctionBreakpoints", "pause"):
        refused = ask(adapter, command)
        assert (refused["success"], refused["message"]) == (False, "no session: send `launch` first")


def test_a_message_that_is_too_deep_is_none_and_half_a_character_is_sent_as_a_question() -> None:
    deep = b"[" * 100_000
    with pytest.raises(WireError, match="not JSON"):
        read_message(BytesIO(b"Content-Length: %d\r\n\r\n" % len(deep) + deep))
    stream = BytesIO()
    write_message(stream, {"message": "\ud800"})
    stream.seek(0)
    assert read_message(stream) == {"message": "?"}


@pytest.mark.parametrize("text", ["[]", "7", '"x"', '{"format": 2, "breakpoints": []}', '{"format": 1}', "\x00"])
def test_a_file_of_breakpoints_that_is_none(text: str, tmp_path: Path) -> None:
    armed = Armed(tmp_path)
    armed.breakpoints_path.parent.mkdir()
    armed.breakpoints_path.write_text(text, encoding="utf-8")
    with pytest.raises(CapturesError, match="`vesper debug --clear` removes it"):
        armed.breakpoints()
    done = CliRunner().invoke(vesper, ["debug", "--config", _config(tmp_path), "--list"])
    assert (done.exit_code, "--clear" in done.output) == (1, True)


def _config(folder: Path) -> str:
    (folder / "vesper.toml").write_text("", encoding="utf-8")
    return str(folder / "vesper.toml")


def test_the_list_of_captures_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.trace.armed_breakpoints._MAX_CAPTURES", 10)
    armed = Armed(tmp_path)
    for number in range(200):
        armed.note(Capture(f"trace-{number}", "node_v1", "x" * 300, number))
        assert armed.captures_path.stat().st_size < 10 * 400 + 500
    assert armed.captured()[-1].trace_id == "trace-199"
    assert [path.name for path in armed.captures_path.parent.iterdir()] == ["captures.jsonl"]


def test_a_step_fails_only_as_its_effect_can() -> None:
    answers = ManualAnswers(compiled_node(PAYMENT))
    answers.fail("call_stripe_api", "http_402")
    with pytest.raises(ValueError, match="cannot fail with `timout`; did you mean `timeout`"):
        answers.fail("call_stripe_api", "timout")
    done = CliRunner().invoke(vesper, ["debug", str(ROOT / PAYMENT), "--fail", "record=http_402"])
    assert (done.exit_code, "`record` cannot fail with `http_402`" in done.output) == (2, True)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 9, 20, 61])
def test_a_terminal_may_be_as_narrow_as_it_likes(width: int) -> None:
    rows = [Row("Variables", "名前", ("漢字" * 20, "漢字" * 20)), Row("Location", "", ("here", "there"))]
    lines = lay_out(rows, ["python", "interp"], width)
    assert json.dumps(lines, ensure_ascii=False).count("漢") >= 20, "nothing is lost"


@pytest.mark.parametrize("engines", [["python"], ["python", "interp"]])
@pytest.mark.parametrize("width", [40, 80])
def test_a_long_value_leaves_room_for_the_others_unless_it_differs(width: int, engines: list[str]) -> None:
    """Each character is measured once; measuring the rest per line would take hours for a million."""
    of = "y" * 1_000_000
    lines = lay_out([Row("Variables", "text", (of,) * len(engines))], engines, width)
    assert len(lines) < 50
    assert "characters more)" in " ".join(" ".join(lines).split())
    if len(engines) == 2:
        whole = "".join(lay_out([Row("Variables", "text", (f"{of}ä", f"{of}ö"))], engines, width))
        assert [whole.count(each) for each in "yäö"] == [2_000_000, 1, 1]
