"""`vesper replay` without a terminal or effects: unchanged on every engine, and changed."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from tests.support.journalled import invoke
from tests.support.payments import ORDER, Shop, founding_text
from vesper.cli.replay.command import _read
from vesper.cli.traces.open_traces import traces_of
from vesper.engines.registry import ENGINES
from vesper.replay.fixing import replay_corpus
from vesper.replay.rerun import UnrecordedRequest, replay
from vesper.replay.session import Session
from vesper.replay.shell import Shell
from vesper.trace.model import Trace

CHARGED = '{"id": "ch_9", "status": "succeeded"}'


@pytest.fixture(scope="module")
def timed_out(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shop, str]]:
    """A payment with a provider timeout, and its shop.

    Read-only: each test works on the exported trace in its own folder.
    """
    with pytest.MonkeyPatch.context() as monkeypatch, Shop(tmp_path_factory.mktemp("shop"), monkeypatch) as shop:
        shop.answers_after(45)
        yield shop, shop.pay().execution


@pytest.fixture
def trace(timed_out: tuple[Shop, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trace]:
    """The trace as `trace.json` in an empty folder with its node. The provider is unreachable."""
    shop, execution = timed_out
    with traces_of(shop.config) as traces:
        found = traces.find(execution)
    monkeypatch.chdir(tmp_path)
    Path("trace.json").write_bytes(found.to_bytes())
    Path("nodes").mkdir()
    Path("nodes/payment_handler_v1.vsp").write_text(founding_text(), encoding="utf-8")
    before = len(shop.stripe.got), shop.stripe.connections
    yield found
    assert (len(shop.stripe.got), shop.stripe.connections) == before, "something was performed"
    assert Path("trace.json").read_bytes() == found.to_bytes(), "the original trace was changed"


def typed(*lines: str) -> str:
    done = invoke("replay", "./trace.json", answer="\n".join(lines) + "\n")
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("engine", list(ENGINES))
def test_it_replays_as_it_was_on_every_engine(trace: Trace, engine: str) -> None:
    assert replay(trace, engine).difference is None
    done = invoke("replay", "./trace.json", "--engine", engine, answer="")
    assert done.exit_code == 0
    assert "Step 3: call_stripe_api ✗ (timeout)\n" in done.stdout
    said = json.loads(invoke("replay", "./trace.json", "--engine", engine, "--format", "json").stdout)
    assert (said["is_same"], said["engine"]) == (True, engine)


def test_an_unchanged_file_is_not_mentioned(trace: Trace) -> None:
    assert "changed since" not in typed("quit")
    assert json.loads(invoke("replay", "./trace.json", "--format", "json").stdout)["file_change"] is None


@pytest.mark.parametrize(
    "old,new,state",
    [("timeout: 30s", "timeout: 31s", "changed"), ("timeout: 30s", "timeout: 30s  # seconds", "text")],
)
def test_a_file_that_changed_since_is_shown(trace: Trace, old: str, new: str, state: str) -> None:
    file = Path("nodes/payment_handler_v1.vsp")
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
    shown = typed("quit")
    assert f"nodes/payment_handler_v1.vsp changed since run {trace.trace_id} " in shown
    assert trace.definition.semantic_hash[:12] in shown
    assert f"{old}\n" in shown
    assert f"{new}\n" in shown
    change = json.loads(invoke("replay", "./trace.json", "--format", "json").stdout)["file_change"]
    assert change["state"] == state
    assert change["recorded_hash"] == trace.definition.semantic_hash
    assert (change["current_hash"] == change["recorded_hash"]) is (state == "text")
    assert [line.strip("-+ ") for line in change["diff"]] == [old, new]


def test_a_file_that_is_no_such_node_any_more_is_not_shown(trace: Trace) -> None:
    Path("nodes/payment_handler_v1.vsp").write_text("a secret\n", encoding="utf-8")
    shown = typed("quit")
    assert f"changed since run {trace.trace_id}" in shown
    assert "no longer this node" in shown
    assert "a secret" not in shown


def test_an_unrecorded_request_is_an_error(trace: Trace) -> None:
    shorter = replace(trace, exchanges=trace.exchanges[:2])
    with pytest.raises(UnrecordedRequest, match="`call_stripe_api` requests http_request, which was not recorded"):
        replay(shorter)
    other = replace(trace.exchanges[2], arguments={**trace.exchanges[2].arguments, "endpoint": "/v2/charges"})
    with pytest.raises(UnrecordedRequest, match="makes another request than recorded"):
        replay(replace(trace, exchanges=(*trace.exchanges[:2], other)))
    swapped = (trace.exchanges[1], trace.exchanges[0], trace.exchanges[2])
    with pytest.raises(UnrecordedRequest, match="the next recorded request is `begin`"):
        replay(replace(trace, exchanges=swapped))
    Path("short.json").write_bytes(shorter.to_bytes())
    refused = invoke("replay", "./short.json", answer="")
    assert refused.exit_code == 1
    assert "which was not recorded" in refused.stderr


def test_a_trace_that_lies_about_a_value_is_found_out(trace: Trace) -> None:
    marks = tuple(replace(each, value="paid") if each.step == "begin" else each for each in trace.marks)
    assert replay(replace(trace, marks=marks)).difference == "a value differs: begin"
    Path("lie.json").write_bytes(replace(trace, marks=marks).to_bytes())
    done = invoke("replay", "./lie.json", answer="")
    assert done.exit_code == 3
    assert "The replay on python differs: a value differs: begin" in done.stdout


def test_moving_through_the_steps(trace: Trace) -> None:
    said = typed("goto 3", "back", "next", "next", "goto call_stripe_api", "goto 0", "back", "goto 7", "show 2", "list")
    assert "(replay) goto 3\nStep 3: call_stripe_api ✗ (timeout)\n  request: http_request (keyed, key" in said
    assert "  attempt 3: give_up (attempts 3, code timeout, reason attempts)\n  failed: timeout (" in said
    assert "(replay) back\nStep 2: state_transition: pending -> processing ✓\n" in said
    assert "at the end. Outcome: failed: timeout" in said
    assert "Before the first step\n  input.amount: 99.99" in said
    assert "at the start" in said
    assert "has no step `7`; it has 3 steps, from 1" in said
    assert '    input.user_id: "user_123"\n    validate_request: null\n    begin: "pending"\n' in said


def test_a_response_typed_at_the_prompt(trace: Trace) -> None:
    said = typed(
        "modify step 3", f"response {CHARGED}", "1", '"processing"', "diff", "save", "changes", "reset", "changes"
    )
    assert "  `record` requests database_write, which returns integer\n" in said
    assert "Success!\n" in said
    assert "Apply fix" not in said  # an answer was changed, not the node
    assert 'call_stripe_api\n  original  failed: timeout\n  now       {id: "ch_9", status: "succeeded"}' in said
    assert 'call_stripe_api.response: fails timeout -> {id: "ch_9", status: "succeeded"}' in said
    kept = said.partition("stored as trace ")[2].partition("\n")[0]
    shown = invoke("traces", "show", kept).stdout
    assert f"made from  {trace.trace_id}" in shown
    assert "returned" in shown
    assert invoke("replay", kept, answer="").exit_code == 0


def test_a_timeout_changed_with_responses_typed_and_applied(trace: Trace) -> None:
    node = Path("nodes/payment_handler_v1.vsp")
    said = typed("modify 3 timeout 60s", "{}", CHARGED, "1", '"processing"', "n", "apply", "y")
    assert "the response" in said  # `{}` is no valid answer, so the prompt repeats
    assert said.count("-    timeout: 30s\n+    timeout: 60s\n") == 2
    assert "Corpus: 1 case and 1 trace replayed on python and interp: all as before" in said
    assert "Success! Apply fix? [y/N] n\nnot applied\n" in said
    assert "applied to nodes/payment_handler_v1.vsp; the trace is as it was" in said
    assert node.read_text("utf-8") == founding_text().replace("timeout: 30s", "timeout: 60s")
    # The file has changed: the same fix cannot be applied from the old trace.
    assert "has changed since the execution" in typed("modify 3 timeout 90s", CHARGED, "1", '"processing"', "y")
    node.unlink()
    assert "does not exist any more" in typed("modify 3 timeout 90s", CHARGED, "1", '"processing"', "y")


def test_inputs_and_engines(trace: Trace) -> None:
    said = typed(
        "modify input amount=5.00", "", "modify input amount 60000", "modify input amount x", "modify input amout 1",
        "modify input idempotency_key null", "run interp from 2", "run warp",
    )  # fmt: skip
    assert "Outcome: constraint" in said  # the maximum is 50,000
    assert "`call_stripe_api` requests http_request, which returns" in said  # another amount is another request
    assert "`x` is not a decimal for the input `amount`" in said
    assert "has no input `amout`; did you mean `amount`?" in said
    assert "`run warp`: write `run`, `run interp`, `run python from 3`" in said


@pytest.mark.parametrize(
    "change, message",
    [
        ("fails timeuot", "cannot fail with `timeuot`; did you mean `timeout`?"),
        ("response {", "the response"),
        ("timeout 20s -> 60s", "is 30s, not 20s"),
        ("timeout 30s", "is already 30s"),
        ("timeout never", "is not valid"),
        ("tiemout 3s", "is not valid"),
        ("timeout", "write a parameter and its value"),
        ("", "nothing was changed"),
    ],
)
def test_a_change_that_cannot_be_made_changes_nothing(trace: Trace, change: str, message: str) -> None:
    said = typed("modify 3", change, "changes")
    assert message in said
    assert said.rstrip().endswith("no changes\n\n(replay)")


def test_without_questions(trace: Trace) -> None:
    Path("answers.json").write_text(
        json.dumps(
            {
                "call_stripe_api": {"returns": {"id": "ch_9", "status": "pending"}},
                "record": {"returns": 1},
                "settle": {"returns": "processing"},
            }
        )
    )
    done = invoke(
        "replay", "./trace.json", "--set", "call_stripe_api.timeout=60s", "--responses", "answers.json",
        "--engine", "interp", "--format", "json", "--save",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["again"]["outcome"]["value"]["status"] == "pending"
    assert said["again"]["engines"] == ["interp"]
    assert said["again"]["origin"] == {
        "trace_id": trace.trace_id, "from_step": 3, "changes": ["call_stripe_api.timeout: 30s -> 60s"],
    }  # fmt: skip
    assert "+    timeout: 60s" in said["fix"]
    assert [each["where"] for each in said["differences"]][-1] == "outcome"
    again = invoke("replay", "./trace.json", "--from", "3", "--set", "3.fails=http_402", "--set", "input.amount=5")
    assert again.exit_code == 1
    assert "`begin`" not in again.stderr
    lacking = invoke("replay", "./trace.json", "--set", "3.timeout=60s")
    assert lacking.exit_code == 1
    assert "has no answer: its own parameters were changed." in lacking.stderr
    other = invoke("replay", "./trace.json", "--set", "input.order_id=ord_7")
    assert "`begin` requests state_transition" in other.stderr
    assert "it makes another request than recorded (`entity` differs)." in other.stderr
    unknown = invoke("replay", "./trace.json", "--set", "3.fails=http_402")
    assert "it was not recorded." in unknown.stderr
    fixed = ["replay", "./trace.json", "--set", "3.timeout=60s", "--responses", "answers.json", "--apply"]
    assert invoke(*fixed, "--format", "json").exit_code == 2, "JSON output cannot ask for confirmation"
    applied = invoke(*fixed, "--yes", "--format", "json")
    assert applied.exit_code == 0, applied.output
    said = json.loads(applied.stdout)
    assert said["applied"] == "nodes/payment_handler_v1.vsp"
    assert said["corpus"]["problems"] == []
    assert said["corpus"]["told"].endswith("replayed on python and interp: all as before")
    assert "timeout: 60s" in Path("nodes/payment_handler_v1.vsp").read_text("utf-8")
    for arguments, code in (
        (["--set", "timeout=3"], 1), (["--set", "9.timeout=3s"], 1), (["--save"], 2), (["--from", "x"], 1),
        (["--set", "3.timeout=60s", "--live", "--format", "json"], 2),
    ):  # fmt: skip
        assert invoke("replay", "./trace.json", *arguments).exit_code == code, arguments


def test_a_failed_save_is_an_error(trace: Trace) -> None:
    Path(".vesper").mkdir()
    Path(".vesper/traces.db").write_bytes(b"this is no database")
    for more in ([], ["--format", "json"]):
        done = invoke("replay", "./trace.json", "--from", "3", "--save", *more)
        assert done.exit_code == 1
        assert "the trace store cannot be used" in done.stderr


def test_a_fix_is_not_to_blame_for_a_trace_that_replays_not_even_without_it(trace: Trace) -> None:
    cut = replace(trace, trace_id="cut", exchanges=trace.exchanges[:1])
    report = replay_corpus(Session.open(trace).compiled, [trace, cut])
    assert (report.traces, report.unreplayable, report.problems) == (1, 1, ())
    assert str(report).endswith(": all as before; 1 trace did not replay even before the change")


def test_a_fix_of_nothing_is_refused_before_anything_runs(trace: Trace) -> None:
    for change in ("input.amount=5", "3.fails=http_402"):
        done = invoke("replay", "./trace.json", "--set", change, "--apply", "--yes", "--live")
        assert done.exit_code == 1
        assert "the text of the node does not change" in done.stderr
        assert "Re-executing" not in done.stdout


def test_ctrl_c_at_a_prompt_cancels_only_the_question(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at a prompt cancels the question; the session and earlier changes remain."""
    lines = iter(["^C", "modify input amount", "^C", "modify 3", "^C", "changes", "quit"])

    def typed_line(prompt: str) -> str:
        if (line := next(lines)) == "^C":
            raise KeyboardInterrupt
        return line

    terminal = StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    monkeypatch.setattr("builtins.input", typed_line)
    said: list[str] = []
    shell = Shell(Session.open(trace, None), _read, said.append, lambda: Path("x"), lambda *_: None)
    shell.loop()
    told = [each for each in said if each]
    assert told == ["`quit` ends the session", *["interrupted: nothing was changed"] * 2, "no changes"]


def test_a_command_that_is_none_is_close_to_some(trace: Trace) -> None:
    said = typed("modfiy 3", "goto", "where", "help")
    assert "`modfiy` is not a command; did you mean `modify`?" in said
    assert "`goto` needs a step: `goto 3` or `goto NAME`" in said
    assert "`where` is not a command; `help` lists the commands" in said
    assert f"on {', '.join(ENGINES)}\n" in said


def test_answers_of_a_file_are_read_by_their_types(trace: Trace) -> None:
    for text, message in (
        ('{"record": {"returns": "one"}}', "`record` gives integer"),
        ('{"nobody": {"returns": 1}}', "has no step `nobody`"),
        ('{"record": 1}', 'write {"returns": VALUE} or {"fails": CODE}'),
        ("[1]", "expected a JSON object"),
        ("{", "answers.json:1:2"),
    ):
        Path("answers.json").write_text(text)
        done = invoke("replay", "./trace.json", "--from", "3", "--responses", "answers.json")
        assert done.exit_code in (1, 2)
        assert message in done.stderr, (text, done.stderr)
    Path("answers.json").write_bytes(b"\xff\xfe")
    done = invoke("replay", "./trace.json", "--from", "3", "--responses", "answers.json")
    assert (done.exit_code, "the file is not UTF-8 text" in done.stderr) == (2, True)


def test_unknown_traces(trace: Trace) -> None:
    for wanted, message in (
        ("ffff", "no trace `ffff`"),
        ("./no.json", "cannot be read"),
        ("", "is not a trace id"),
    ):
        done = invoke("replay", wanted, answer="")
        assert done.exit_code == 1
        assert message in done.stderr


def test_a_trace_as_a_pytest(trace: Trace) -> None:
    assert invoke("traces", "to-test", "./trace.json", "--as", "pytest", "-o", "tests/test_late.py").exit_code == 0
    text = Path("tests/test_late.py").read_text("utf-8")
    (name,) = [each for each in runpy.run_path("tests/test_late.py") if each.startswith("test_")]
    for engine in ENGINES:
        runpy.run_path("tests/test_late.py")[name](engine)
    Path("tests/test_late.py").write_text(text.replace("'timeout'", "'unavailable'"))
    with pytest.raises(AssertionError):
        runpy.run_path("tests/test_late.py")[name]("python")


def test_a_sensitive_trace_is_replayed_and_its_values_stay_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Shop(tmp_path, monkeypatch, founding_text(is_sensitive=True)) as shop:
        execution = shop.pay().execution
        said = invoke("replay", execution, answer="show 3\nmodify input amount 5\n").stdout
        assert "user_123" not in said
        assert ORDER in said, "the order is no sensitive input"
        assert "user_123" in invoke("replay", execution, "--reveal", answer="show 3\n").stdout
        assert len(shop.stripe.got) == 1


def test_steps_of_called_nodes_and_of_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    golden = Path(__file__).parents[1] / "trace" / "goldens" / "format_1_effects.json"
    lines = ["modify paid/call_stripe_api timeout 9s", "modify paid/call_stripe_api fails http_402"]
    answers = ['"processing"', "[]", "0"]
    done = invoke("replay", str(golden), "--reveal", answer="\n".join([*lines, *answers, "goto total", ""]))
    assert done.exit_code == 0, done.output
    steps = [line for line in done.stdout.splitlines() if line.startswith("Step ")]
    assert "Step 4: reservation[0]/stock ✓" in steps
    assert "Step 10: paid/call_stripe_api ✓" in steps
    assert "is a step of a node that `paid` calls, not of checkout_v1" in done.stdout
    assert "`paid/mark_declined` requests state_transition" in done.stdout
    assert "Outcome: error {" in done.stdout
    assert "Step 2: total ✓\n  value: 28.60\n" in done.stdout


def test_a_change_may_contain_the_separator(trace: Trace) -> None:
    said = typed(
        'modify 3 response {"id": "ch;9", "status": "succeeded"}; timeout 60s', "1", '"processing"', "n", "changes"
    )
    assert 'call_stripe_api.response: fails timeout -> {id: "ch;9", status: "succeeded"}' in said
    assert "call_stripe_api.timeout: 30s -> 60s" in said


def test_one_invalid_change_rejects_all_changes(trace: Trace) -> None:
    said = typed("modify 3 timeout 60s; fails nonsense", "changes")
    assert "`call_stripe_api` cannot fail with `nonsense`" in said
    assert "no changes" in said
    assert "30s -> 60s" not in said


def test_an_unavailable_engine_is_reported_at_the_prompt(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    from vesper.engines.engine import EngineUnavailable

    def load(_: object) -> None:
        raise EngineUnavailable("the extension is not built")

    session = Session.open(trace)
    lines: list[str] = []
    shell = Shell(session, lambda _: None, lines.append, Path, lambda *_: None)
    monkeypatch.setattr("vesper.replay.rerun.program_of", lambda *_: load(None))
    assert not shell.run_command("run interp")
    assert lines[-1] == "the extension is not built"
