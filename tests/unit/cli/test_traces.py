"""`vesper run --trace` and `vesper traces`: what they print, what they find, and what they refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.journalled import Place, a_place, invoke, node_text
from tests.support.nodes import ROOT
from tests.support.servers import Postgres
from vesper.cli.traces.open_traces import traces_of
from vesper.trace.model import Trace

NODES = str(ROOT / "nodes")
ARGUMENTS = ["-i", "balance=100", "-i", "currency=USD", "-i", "country=DE", "-i", "user_age_days=400"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    with a_place(tmp_path, "sqlite:journal.db") as found:
        yield found


def record_trace(amount: str, *more: str) -> str:
    """A run of a pure node; the id of its trace."""
    done = invoke(
        "run", "payment_decision_v1", "--nodes", NODES, "-i", f"amount={amount}", *ARGUMENTS, "--trace", *more
    )
    return done.stdout.rpartition("trace ")[2].strip()


def listed(*arguments: str) -> list[str]:
    done = invoke("traces", "list", "--format", "json", *arguments)
    assert done.exit_code == 0, done.stderr
    return [each["trace_id"] for each in json.loads(done.stdout)]


def test_looking_creates_nothing(place: Place) -> None:
    assert listed() == []
    assert invoke("traces", "list").stdout == "no matching traces\n"
    assert invoke("traces", "show", "x").exit_code == 1
    assert sorted(path.name for path in place.folder.iterdir()) == ["vesper.toml"]


def test_a_pure_run_prints_the_id_of_its_trace(place: Place) -> None:
    for engine in ("python", "interp", "both"):
        trace_id = record_trace("50", "--engine", engine)
        shown = invoke("traces", "show", trace_id[:23]).stdout.splitlines()
        assert shown[0] == f"trace {trace_id}"
        assert [line.strip() for line in shown[-4:]] == [
            "1 ✓ fee          1.750", "2 ✓ risk         0", "3 ✓ new_balance  48.250", '4 ✓ decision     "approve"',
        ]  # fmt: skip
    done = invoke(
        "run", "payment_decision_v1", "--nodes", NODES, "-i", "amount=0", *ARGUMENTS, "--trace", "--format", "json"
    )
    assert done.exit_code == 1
    trace = json.loads(invoke("traces", "show", json.loads(done.stdout)["trace_id"], "--format", "json").stdout)
    assert trace["outcome"]["outcome"] == "contract_broken"
    assert [each["text"] for each in trace["contracts"] if not each["holds"]] == ["amount > 0"]


def test_an_engine_is_for_traces_that_are_made_when_they_are_shown(place: Place) -> None:
    stored = invoke("traces", "show", record_trace("50"), "--engine", "interp")
    assert stored.stderr.startswith("note: a stored trace is shown as recorded, on python; `vesper replay --engine")
    made = invoke("traces", "show", place.run(node_text()), "--engine", "interp")
    assert (made.stderr, ", on interp" in made.stdout) == ("", True)


def test_a_run_with_effects_is_its_own_trace(place: Place) -> None:
    (place.folder / "nodes").mkdir()
    (place.folder / "nodes" / "charge_v1.vsp").write_text(node_text(), encoding="utf-8")
    done = invoke(
        "run", "charge_v1", "-i", "event_id=e", "-i", "customer=ann", "-i", "amount=5", "--trace", "--format", "json"
    )
    said = json.loads(done.stdout)
    assert said["trace_id"] == said["execution"]
    assert listed() == [said["trace_id"]]
    refused = invoke("run", "charge_v1", "-i", "event_id=e", "--trace")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "there is no trace" in refused.stderr
    assert place.charged == ["ann"]


def test_filters(place: Place) -> None:
    small, large, broken = record_trace("50"), record_trace("20000"), record_trace("0")
    charged = place.run(node_text(), "ann", "20000.00")
    doubtful = place.in_doubt(node_text(), "bob")
    for arguments, expected in (
        ([], [doubtful, charged, broken, large, small]),
        (["--node", "payment_decision"], [broken, large, small]),
        (["--node", "charge_v1"], [doubtful, charged]),
        (["--where", "input.amount > 10000"], [charged, large]),
        (["--where", "input.amount > 10000", "--node", "charge"], [charged]),
        (["--where", "currency == USD AND amount < 100"], [broken, small]),
        (["--where", 'customer == "bob"'], [doubtful]),
        (["--outcome", "contract_broken"], [broken]),
        (["--outcome", "unfinished"], [doubtful]),
        (["--since", "2100-01-01"], []),
        (["--until", "2001-01-01"], []),
        (["--diverged"], []),
        (["--limit", "2"], [doubtful, charged]),
    ):
        assert listed(*arguments) == expected, arguments
    assert "--limit shows more" in invoke("traces", "list", "--limit", "1").stdout


def test_traces_on_which_engines_did_not_agree(place: Place) -> None:
    record_trace("50")
    with traces_of(place.config) as traces:
        parted = replace(traces.find(listed()[0]), trace_id="01parted", divergence="interp parts from python, at risk")
        traces.store.add(parted)
    assert listed("--diverged") == ["01parted"]
    assert "divergence  interp parts from python, at risk" in invoke("traces", "show", "01parted").stdout
    assert "Recorded divergence: interp parts" in invoke("replay", "01parted", answer="").stdout


def test_the_settings_of_traces(place: Place) -> None:
    settings = (place.folder / "vesper.toml").read_text("utf-8")
    for text, message in (
        ("[traces]\nmax_traces = 0\n", "a number from 1 to"),
        ('[traces]\nretention = "soon"\n', "a duration such as"),
        ('[traces]\nmax_size = "1 KiB"\n', "1 MiB at least"),
        ('[traces]\nptah = "x"\n', "did you mean `path`"),
    ):
        (place.folder / "vesper.toml").write_text(f"{settings}\n{text}", encoding="utf-8")
        refused = invoke("traces", "list")
        assert refused.exit_code == 1
        assert message in refused.stderr
    (place.folder / "vesper.toml").write_text(f'{settings}\n[traces]\npath = "kept/t.db"\n', encoding="utf-8")
    record_trace("50")
    assert (place.folder / "kept" / "t.db").exists()


def test_an_expression_that_is_wrong_has_a_caret(place: Place) -> None:
    record_trace("50")
    done = invoke("traces", "list", "--where", 'input.amount > "x"')
    assert done.exit_code == 1
    assert '1 | input.amount > "x"\n  |              ^ between decimal and string' in done.stderr
    assert "did you mean `amount`?" in invoke("traces", "list", "--where", "amout > 1").stderr
    assert "no trace of a node `payment_decission`" in invoke(
        "traces", "list", "--node", "payment_decission"
    ).stderr  # fmt: skip


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_what_is_shown_fits_the_terminal(place: Place, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = place.run(node_text(), "somebody whose name is long enough to be cut " * 4)
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in (["list"], ["show", execution]):
        lines = invoke("traces", *arguments).stdout.splitlines()
        assert max(map(len, lines)) <= columns
        assert any("charge_v1" in line for line in lines)


def test_a_list_on_a_narrow_terminal_keeps_what_is_asked_for_most(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_trace("50", "--engine", "both")
    monkeypatch.delenv("COLUMNS")
    heading, line = invoke("traces", "list").stdout.splitlines()
    assert line.endswith("Z  python,interp"), "nothing is cut where there is no terminal"
    monkeypatch.setenv("COLUMNS", "80")
    heading, line = invoke("traces", "list").stdout.splitlines()
    assert heading.split() == ["trace", "node", "outcome", "took", "started"]
    assert re.search(r"  [0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$", line)


def test_an_exported_trace_is_read_anywhere(place: Place) -> None:
    execution = place.run(node_text())
    assert invoke("traces", "export", execution, "-o", "out.json").exit_code == 0
    assert invoke("traces", "export", execution, "-o", "out.json").exit_code == 1
    (place.folder / "journal.db").unlink()
    assert f"trace {execution}" in invoke("traces", "show", "./out.json").stdout
    assert Trace.from_bytes(Path("out.json").read_bytes()).trace_id == execution
    Path("out.json").write_bytes(Path("out.json").read_bytes()[:-100])
    assert "is not a trace, or is truncated" in invoke("traces", "show", "out.json").stderr
    assert "cannot be read" in invoke("traces", "show", "./nothing.json").stderr


def test_spans_for_opentelemetry(place: Place) -> None:
    place.failures = ["effect_failed"]
    execution = place.run(node_text(sensitive=True), "ann")
    text = invoke("traces", "export", execution, "--format", "otlp").stdout
    (spans,) = [each["scopeSpans"][0]["spans"] for each in json.loads(text)["resourceSpans"]]
    root, known, charge = spans
    said = {each["key"]: next(iter(each["value"].values())) for each in root["attributes"]}
    assert root["name"] == "sir.execute"
    assert said["sir.node_id"] == "charge_v1"
    assert said["sir.node_type"] == "event_handler"
    assert said["sir.intent"] == "Charge a customer once"
    assert said["sir.execution_path"] == "python"
    assert said["sir.outcome"] == "declared_error"
    assert {each["parentSpanId"] for each in (known, charge)} == {root["spanId"]}
    assert {each["traceId"] for each in spans} == {execution.replace("-", "")}
    assert charge["status"]["code"] == 2
    assert all(int(each["endTimeUnixNano"]) >= int(each["startTimeUnixNano"]) for each in spans)
    assert "ann" not in text  # no values leave


def test_a_filter_asks_about_what_is_sensitive_only_when_told_to(place: Place) -> None:
    hidden, open_ = place.run(node_text(sensitive=True), "ann"), place.run(node_text(), "ann")
    question = ["traces", "list", "--where", 'customer == "ann"', "--format", "json"]
    found = invoke(*question)
    assert [each["trace_id"] for each in json.loads(found.stdout)] == [open_]
    assert found.stderr == ("1 trace skipped: --where reads sensitive inputs; --reveal includes them\n")
    revealed = invoke(*question, "--reveal")
    assert [each["trace_id"] for each in json.loads(revealed.stdout)] == [open_, hidden]
    assert revealed.stderr == ""
    assert listed("--where", "amount > 0") == [open_, hidden], "of such nodes other inputs can be asked about"


def test_what_is_sensitive_is_shown_when_asked(place: Place) -> None:
    execution = place.run(node_text(sensitive=True), "ann")
    assert "ann" not in invoke("traces", "show", execution).stdout
    assert "ann" not in invoke("traces", "show", execution, "--format", "json").stdout
    assert "ann" in invoke("traces", "show", execution, "--reveal").stdout
    refused = invoke("traces", "export", execution)
    assert refused.exit_code == 1
    assert "--reveal exports it anyway" in refused.stderr
    assert "ann" in invoke("traces", "export", execution, "--reveal").stdout


def test_a_run_that_has_not_ended_or_has_no_steps_says_so(place: Place) -> None:
    doubtful = place.in_doubt(node_text(), "bob")
    opened = invoke("replay", doubtful, answer="").stdout
    assert "Outcome: not ended, waits at charge\n" in opened
    stands = invoke("debug", "--trace", doubtful, "-x", "continue").stdout
    assert "or start with --answer charge=JSON\n" in stands, "it is recorded: there is no other case, and no --live"
    never = invoke("run", "payment_decision_v1", "--nodes", NODES, *ARGUMENTS, "--trace").stdout.split()[-1]
    assert "\n\nOutcome: failed: bad_input\n" in invoke("replay", never, answer="").stdout


def test_a_diff_says_where(place: Place) -> None:
    one, other = record_trace("50"), record_trace("60")
    assert invoke("traces", "diff", one, one).stdout == "the traces do not differ\n"
    done = invoke("traces", "diff", one, other)
    assert done.exit_code == 1
    assert done.stdout.startswith("inputs.amount\n  left   50\n  right  60\n")
    found = json.loads(invoke("traces", "diff", one, other, "--format", "json").stdout)
    assert [each["where"] for each in found][:2] == ["inputs.amount", "fee"]
    again = invoke("traces", "diff", one, record_trace("50"))
    assert (again.exit_code, again.stdout) == (0, "the traces do not differ\n"), "no two begin at the same moment"


def test_when_it_began_is_a_difference_where_the_node_asks_for_it(place: Place) -> None:
    node = Path("stamp_v1.vsp")
    node.write_text(
        "node_id: stamp_v1\ntype: data_transform\nintent: Say when\ninputs: {names: array<string>}\n"
        "outputs: {success: {at: timestamp}}\nflow:\n  - {operation: return, success: {at: now()}}\n",
        encoding="utf-8",
    )
    moments = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    traces = [
        invoke("run", f"./{node}", "-i", "name=x", "--now", each, "--trace").stdout.split()[-1] for each in moments
    ]
    found = json.loads(invoke("traces", "diff", *traces, "--format", "json").stdout)
    assert found[0] == {"where": "now", "left": moments[0], "right": moments[1]}


def test_a_diff_of_sensitive_traces_hides_values_and_names_nodes(place: Place) -> None:
    found = invoke("traces", "diff", record_trace("50"), place.run(node_text(sensitive=True), "ann")).stdout
    assert found.startswith("node\n  left   payment_decision_v1\n")
    assert "ann" not in found
    assert 'inputs.customer\n  left   -\n  right  "<sensitive>"\n' in found


def test_pruning_asks_and_leaves_the_journal_alone(place: Place) -> None:
    stored, journalled = record_trace("50"), place.run(node_text())
    assert invoke("traces", "prune", "--older-than", "0s", answer="n\n").exit_code == 1
    assert set(listed()) == {stored, journalled}
    done = invoke("traces", "prune", "--older-than", "0s", "--yes")
    assert "deleted 1 trace" in done.stdout
    assert listed() == [journalled]
    assert "it was never recorded or was pruned" in invoke("traces", "show", stored).stderr


def test_the_former_command_names_its_replacement() -> None:
    done = invoke("trace", "to-test", "01some")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "use `vesper traces to-test`" in done.stderr


def test_a_trace_as_a_case_and_as_a_conformance_case(place: Place) -> None:
    execution = place.run(node_text(), "ann")
    case = invoke("traces", "to-test", execution, "--name", "as it was").stdout
    assert "- name: as it was" in case
    assert "step: charge" in case
    agreed = invoke("traces", "to-test", execution, "--as", "conformance").stdout
    assert '{"path":"charge","returns":{"dict":{"fee":{"decimal":"0.10"}' in agreed
    assert agreed.endswith("  engines: agree\n")
    assert invoke("traces", "to-test", execution, "--as", "pytest").exit_code == 2
    for name in ("test_it.yaml", "test_it"):
        assert invoke("traces", "to-test", execution, "--as", "pytest", "-o", name).exit_code == 2
    Path("test_it.py").write_text("# mine\n", encoding="utf-8")
    refused = invoke("traces", "to-test", execution, "--as", "pytest", "-o", "test_it.py")
    assert (refused.exit_code, "test_it.py already exists" in refused.stderr) == (1, True)
    assert not Path("test_it.yaml").exists(), "of two files both are written, or none"
    secret = place.run(node_text(sensitive=True), "ann")
    assert "customer: xxx" in invoke("traces", "to-test", secret).stdout
    assert "customer: ann" in invoke("traces", "to-test", secret, "--reveal").stdout
    refused = invoke("traces", "to-test", secret, "--as", "conformance")
    assert (refused.exit_code, "--reveal" in refused.stderr) == (1, True)
    revealed = invoke("traces", "to-test", secret, "--as", "pytest", "-o", "test_ann.py", "--reveal")
    assert revealed.exit_code == 0
    assert "'customer': 'ann'" in (place.folder / "test_ann.py").read_text(encoding="utf-8")
    assert invoke("traces", "to-test", place.in_doubt(node_text())).exit_code == 1
    never = invoke("run", "payment_decision_v1", "--nodes", NODES, *ARGUMENTS, "--trace").stdout.split()[-1]
    refused = invoke("traces", "to-test", never)
    assert "the node rejected its inputs, so there is nothing to record (amount: missing)" in refused.stderr
    assert place.charged == ["ann", "ann"]


def test_a_journal_in_postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: Postgres) -> None:
    monkeypatch.chdir(tmp_path)
    with a_place(tmp_path, postgres.new_database()) as place:
        execution = place.run(node_text(), "ann", "20000.00")
        small = record_trace("50")
        assert listed() == [small, execution]
        assert listed("--where", "input.amount > 10000") == [execution]
        done = invoke("replay", execution, "--engine", "interp", answer="")
        assert done.exit_code == 0
        assert "Step 2: charge ✓" in done.stdout
        assert place.charged == ["ann"]
