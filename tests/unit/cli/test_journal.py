"""`vesper journal` on real runs: what it says, what it refuses, and what it does to them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.journal_file import run_statement
from tests.support.journalled import Place, a_place, compiled_node, invoke, node_text
from tests.support.servers import Postgres, free_port
from vesper.effects.custom.performer import effect, registered, unregister
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import Status
from vesper.migration.shadow.journal_replay import follow

PLACES = 1 << 31
"""Places of the rows of one run (docs/spec/journal.md)."""
RESULT = '{"id": "ch_7", "fee": 0.50}'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    with a_place(tmp_path, "sqlite:journal.db") as found:
        yield found


def kinds(place: Place, execution: str) -> list[str]:
    with place.journal() as journal:
        return [each.entry.kind.value for each in journal.read(execution).entries]


def change(place: Place, sql: str, *values: object) -> None:
    assert run_statement(place.folder / "journal.db", f"{sql} RETURNING 1", values)


# -- list -----------------------------------------------------------------------------------------


def test_looking_creates_no_journal(place: Place) -> None:
    done = invoke("journal", "list")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "there is no journal at" in done.stderr
    assert json.loads(invoke("journal", "list", "--format", "json").stdout) == []
    assert invoke("journal", "recover").exit_code == 0
    for arguments in (["show", "x"], ["verify"], ["prune", "--older-than", "1d"], ["erase", "x"]):
        done = invoke("journal", *arguments)
        assert done.exit_code == 1
        assert "there is no journal at" in done.stderr
    assert not (place.folder / "journal.db").exists()


def test_a_journal_that_was_named_must_be_there(place: Place) -> None:
    done = invoke("journal", "list", "--journal", "sqlite:elsewhere.db")
    assert done.exit_code == 1
    assert f"there is no journal at {place.folder / 'elsewhere.db'}" in done.stderr
    assert not (place.folder / "elsewhere.db").exists()


def test_the_newest_come_first(place: Place) -> None:
    first, second = place.run(node_text(), "ann"), place.run(node_text("refund_v2"), "eve", engine="interp")
    heading, *rows = invoke("journal", "list").stdout.splitlines()
    assert heading.split() == ["execution", "node", "status", "outcome", "started", "took", "engine"]
    assert [row.split()[:4] for row in rows] == [
        [second[:18], "refund_v2", "ended", "returned"],
        [first[:18], "charge_v1", "ended", "returned"],
    ]
    assert [row.split()[-1] for row in rows] == ["interp", "python"]
    found = json.loads(invoke("journal", "list", "--format", "json").stdout)
    assert [each["execution"] for each in found] == [second, first]
    assert found[0]["status"] == "ended"
    assert found[0]["started"].endswith("Z")


def test_a_list_says_what_is_to_be_done(place: Place) -> None:
    place.run(node_text())
    assert "doubt" not in invoke("journal", "list").stdout
    place.in_doubt(node_text())
    place.left(node_text())
    said = invoke("journal", "list").stdout
    assert "1 execution is in doubt" in said
    assert "vesper journal resolve" in said
    assert "1 execution is unfinished" in said


def test_a_list_of_some(place: Place) -> None:
    ids = {"new": place.run(node_text("charge_v2")), "old": place.run(node_text("charge_v1"))}
    ids |= {"refund": place.run(node_text("refund_v1")), "doubt": place.in_doubt(node_text("charge_v1"))}
    for arguments, expected in (
        (["--status", "in_doubt"], ["doubt"]),
        (["--status", "ended"], ["refund", "old", "new"]),
        (["--node", "charge"], ["doubt", "old", "new"]),
        (["--node", "charge_v2"], ["new"]),
        (["--since", "1h"], ["doubt", "refund", "old", "new"]),
        (["--since", "2001-01-01"], ["doubt", "refund", "old", "new"]),
        (["--since", "2100-01-01T00:00:00Z"], []),
        (["--limit", "1"], ["doubt"]),
        (["--node", "charge", "--limit", "2"], ["doubt", "old"]),
    ):
        found = json.loads(invoke("journal", "list", "--format", "json", *arguments).stdout)
        assert [each["execution"] for each in found] == [ids[name] for name in expected], arguments


def test_nothing_to_list(place: Place) -> None:
    place.run(node_text())
    assert invoke("journal", "list", "--status", "in_doubt").stdout == "no matching executions\n"


def test_a_node_that_never_ran(place: Place) -> None:
    place.run(node_text("charge_v1"))
    done = invoke("journal", "list", "--node", "chrge")
    assert done.exit_code == 1
    assert "did you mean `charge`?" in done.stderr


@pytest.mark.parametrize("since", ["yesterday", "", "5", "99999999999d", "2026-13-01", "5 parsecs", "\udcff"])
def test_a_time_that_is_none(place: Place, since: str) -> None:
    done = invoke("journal", "list", "--since", since)
    assert done.exit_code == 2
    assert "neither a duration" in done.stderr


# -- which journal, which execution ---------------------------------------------------------------


@pytest.mark.parametrize(
    "dsn, expected",
    [
        ("mysql://somewhere", "names no journal"),
        ("sqlite:", "is a folder"),
        ("sqlite:vesper.toml", "vesper.toml"),
        ("sqlite::memory:", "one in memory would keep nothing"),
    ],
)
@pytest.mark.parametrize("command", [["list"], ["show", "x"], ["verify"], ["recover"]], ids=" ".join)
def test_a_journal_that_is_none(place: Place, dsn: str, expected: str, command: list[str]) -> None:
    done = invoke("journal", *command, "--journal", dsn)
    assert done.exit_code == 1
    assert expected in done.stderr


def test_settings_that_are_wrong(place: Place) -> None:
    (place.folder / "vesper.toml").write_text("[journal]\nlease = 7\n")
    for arguments in (["list"], ["recover"], ["resolve", "a", "b", "--not-done", "--why", "c"]):
        done = invoke("journal", *arguments)
        assert done.exit_code == 1
        assert "vesper.toml:2: journal.lease" in done.stderr


def test_a_key_that_cannot_be_had(place: Place) -> None:
    place.run(node_text())
    place.settings('key_secret = "absent"\n')
    done = invoke("journal", "list")
    assert done.exit_code == 1
    assert "a key of the journal cannot be read" in done.stderr


def test_an_id_that_is_none(place: Place) -> None:
    place.run(node_text())
    for wanted in ("", "%", "\udcff", "x" * 5_000, "a\nb", "'; DROP TABLE vesper_executions; --"):
        done = invoke("journal", "show", wanted)
        assert done.exit_code == 1, wanted
        assert "execution" in done.stderr
        assert len(done.stderr) < 500
    assert len(json.loads(invoke("journal", "list", "--format", "json").stdout)) == 1


def test_an_unknown_id_is_answered_with_a_close_one(place: Place) -> None:
    execution = place.run(node_text())
    wrong = execution[:12] + ("0" if execution[12] != "0" else "1") + execution[13:]
    done = invoke("journal", "show", wrong)
    assert done.exit_code == 1
    assert f"did you mean {execution}?" in done.stderr


def test_a_beginning_that_several_have(place: Place) -> None:
    ids = sorted(place.run(node_text()) for _ in range(3))
    done = invoke("journal", "show", ids[0][:5])
    assert done.exit_code == 1
    assert done.stderr.splitlines()[1:] == [f"  {each}" for each in ids]


# -- show -----------------------------------------------------------------------------------------


def test_everything_that_happened_is_shown_in_order(place: Place) -> None:
    place.failures = ["unavailable"]
    policy = "retry: {attempts: 3, on: [unavailable], backoff: {base: 1ms}}"
    execution = place.run(node_text(effect_class="keyed", policy=policy))
    said = invoke("journal", "show", execution[:20]).stdout
    parts = [
        f"execution {execution}",
        "status   ended: returned",
        "START",
        'inputs  {amount: 10.00, customer: "ann", event_id: "event ann"}',
        "RESULT  known",
        "custom (read)",
        "result   3",
        "INTENT  charge",
        'custom (keyed, key "event ann")',
        'request  {name: "keyed_charge", request: {amount: 10.00, customer: "ann"}}',
        "VALUE   charge#1",
        "decision",
        "RESULT  charge",
        'id: "ch_ann"',
        "END",
        "outcome  returned",
    ]
    at = 0
    for part in parts:
        assert part in said[at:], f"{part!r} is not in its place in\n{said}"
        at = said.index(part, at) + len(part)


def test_an_execution_as_json_loses_nothing(place: Place) -> None:
    execution = place.run(node_text(), amount="10.00")
    found = json.loads(invoke("journal", "show", execution, "--format", "json").stdout)
    assert [each["kind"] for each in found["entries"]] == kinds(place, execution)
    assert found["entries"][0]["body"]["inputs"]["amount"] == {"$decimal": "10.00"}
    assert [each["seq"] for each in found["entries"]] == list(range(1, len(found["entries"]) + 1))
    assert found["in_doubt"] == []


def test_what_is_in_doubt_is_shown_with_what_to_do(place: Place) -> None:
    execution = place.in_doubt(node_text())
    said = invoke("journal", "show", execution).stdout
    assert "in doubt: charge: it may have been performed" in said
    assert "the step gives {id: string, fee: decimal, note: optional<string>}" in said
    assert f"vesper journal resolve {execution} 'charge'" in said
    found = json.loads(invoke("journal", "show", execution, "--format", "json").stdout)
    assert [each["path"] for each in found["in_doubt"]] == ["charge"]


def test_a_body_of_any_size_is_shown_in_bounds(place: Place) -> None:
    execution = place.run(node_text(), customer="x" * 300_000)
    said = invoke("journal", "show", execution).stdout
    assert len(said) < 20_000
    assert "--format json shows all of it" in said
    assert "x" * 300_000 in invoke("journal", "show", execution, "--format", "json").stdout


def test_what_would_act_on_a_terminal_does_not(place: Place) -> None:
    said = invoke("journal", "show", place.run(node_text(), customer="\x1b[31mred\x07")).stdout
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "\\x1b[31mred" in said


def test_a_sensitive_execution_is_hidden_unless_it_is_asked_for(place: Place) -> None:
    execution = place.in_doubt(node_text(sensitive=True), customer="carol")
    for style in ("text", "json"):
        hidden = invoke("journal", "show", execution, "--format", style).stdout
        assert "carol" not in hidden
        assert "<sensitive>" in hidden
        assert "INTENT" in hidden
        assert "carol" in invoke("journal", "show", execution, "--format", style, "--reveal").stdout


# -- resolve --------------------------------------------------------------------------------------


def test_a_result_is_read_by_its_type_and_finishes_the_run(place: Place) -> None:
    execution = place.in_doubt(node_text())
    done = invoke("journal", "resolve", execution[:20], "charge", "--result", RESULT, "--why", "seen", "--by", "zoe")
    assert done.exit_code == 0, done.output
    assert "ended: returned" in done.stdout
    assert "ch_7" in done.stdout
    assert place.charged == []
    with place.journal() as journal:
        entries = [each.entry for each in journal.read(execution).entries]
    (resolved,) = [each for each in entries if each.kind is Kind.RESOLVED]
    assert (resolved.body["by"], resolved.body["why"]) == ("zoe", "seen")
    value = entries[-1].body["value"]
    assert isinstance(value, dict)
    assert str(value["fee"]) == "0.50"


def test_a_result_that_does_not_fit_is_refused(place: Place) -> None:
    execution = place.in_doubt(node_text())
    before = kinds(place, execution)
    for result, expected in (
        ('{"id": 7, "fee": 1}', "at `id`, is no string"),
        ('{"id": "x"}', "has no `fee`"),
        ('{"id": "x", "fee": "much"}', "at `fee`, is no decimal"),
        ("[]", "gives {id: string"),
        ("null", "gives {id: string"),
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ('{"id": "x", "id": "y", "fee": 1}', "is not JSON"),
        ("[" * 30_000, "is not JSON"),
        ('{"id": "x", "fee": NaN}', "is not JSON"),
        ('{"id": "x", "fee": 1e999999}', "at `fee`"),
        ('{"id": "\\ud800", "fee": 1}', "at `id`"),
    ):
        done = invoke("journal", "resolve", execution, "charge", "--result", result, "--why", "x")
        assert done.exit_code == 1, result
        assert expected in done.stderr
        assert "Nothing was written" in done.stderr
    assert kinds(place, execution) == before


def test_fields_that_the_step_does_not_declare_are_named(place: Place) -> None:
    execution = place.in_doubt(node_text())
    result = '{"id": "ch_7", "fee": 1, "livemode": true}'
    done = invoke("journal", "resolve", execution, "charge", "--result", result, "--why", "x")
    assert done.exit_code == 0
    assert "does not declare livemode" in done.stderr


def test_a_failure_goes_to_the_handler_of_the_step(place: Place) -> None:
    execution = place.in_doubt(node_text())
    done = invoke("journal", "resolve", execution, "charge", "--failed", "effect_failed", "--why", "x")
    assert done.exit_code == 0
    assert "ended: declared error: declined" in done.stdout
    assert place.charged == []


def test_a_code_that_the_effect_does_not_have(place: Place) -> None:
    execution = place.in_doubt(node_text())
    done = invoke("journal", "resolve", execution, "charge", "--failed", "efect_failed", "--why", "x")
    assert done.exit_code == 1
    assert "did you mean `effect_failed`?" in done.stderr
    done = invoke("journal", "resolve", execution, "charge", "--failed", "http_404", "--why", "x")
    assert done.exit_code == 1
    assert "it can fail with timeout, unavailable, effect_failed, bad_response" in done.stderr


def test_what_was_not_done_is_done_now_and_once(place: Place) -> None:
    execution = place.in_doubt(node_text())
    done = invoke("journal", "resolve", execution, "charge", "--not-done", "--why", "their log has nothing")
    assert done.exit_code == 0, done.output
    assert place.charged == ["bob"]
    found = kinds(place, execution)
    assert found.count("INTENT") == 2
    assert found[-2:] == ["RESULT", "END"]
    assert "the effect was not performed" in invoke("journal", "show", execution).stdout


def test_a_follower_reads_past_what_was_not_done(place: Place) -> None:
    text = node_text()
    execution = place.in_doubt(text)
    invoke("journal", "resolve", execution, "charge", "--not-done", "--why", "x")
    with place.journal() as journal:
        entries = [each.entry for each in journal.read(execution).entries]
    compiled = compiled_node(text)
    for engine in ENGINES.values():
        assert follow(engine.load(compiled), entries).difference is None


def test_a_second_crash_after_not_done_is_in_doubt_again(place: Place) -> None:
    execution = place.in_doubt(node_text())
    invoke("journal", "resolve", execution, "charge", "--not-done", "--why", "x", "--later")
    place.dies = True
    with pytest.raises(KeyboardInterrupt):
        resumed(place, execution)
    place.dies = False
    assert resumed(place, execution) is None
    assert place.charged == []
    done_again = invoke("journal", "resolve", execution, "charge", "--result", RESULT, "--why", "x")
    assert done_again.exit_code == 0
    assert place.charged == []


def resumed(place: Place, execution: str) -> object:
    with Host(place.config) as host:
        return host.resume(execution).outcome


def test_not_done_of_what_lost_its_grant_ends_as_denied(place: Place) -> None:
    text = node_text()
    execution = place.in_doubt(text)
    (place.folder / "vesper.toml").write_text('[journal]\ndsn = "sqlite:journal.db"\n')
    done = invoke("journal", "resolve", execution, "charge", "--not-done", "--why", "x")
    assert done.exit_code == 0
    assert "ended: denied effect.call." in done.stdout
    assert place.charged == []
    with place.journal() as journal:
        entries = [each.entry for each in journal.read(execution).entries]
    assert follow(ENGINES["interp"].load(compiled_node(text)), entries).difference is None


def test_later_leaves_it_to_recovery(place: Place) -> None:
    execution = place.in_doubt(node_text())
    done = invoke("journal", "resolve", execution, "charge", "--result", RESULT, "--why", "x", "--later")
    assert done.exit_code == 0
    with place.journal() as journal:
        assert journal.read(execution).summary.status is Status.RUNNING
    done = invoke("journal", "recover")
    assert done.exit_code == 0, done.output
    assert f"{execution[:18]}  charge_v1  returned" in done.stdout


def test_a_sensitive_outcome_is_not_printed(place: Place) -> None:
    execution = place.in_doubt(node_text(sensitive=True), customer="carol")
    done = invoke("journal", "resolve", execution, "charge", "--not-done", "--why", "x")
    assert done.exit_code == 0
    assert "ended: returned" in done.stdout
    assert "carol" not in done.output
    assert place.charged == ["carol"]


def test_without_settings_nothing_is_finished(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = place.in_doubt(node_text())
    place.left(node_text())
    (place.folder / "vesper.toml").unlink()
    monkeypatch.setattr("vesper.config.locate._nearest_file", lambda _: None)  # whatever lies above the folder
    dsn = ["--journal", "sqlite:journal.db"]
    for arguments in (["recover"], ["resolve", execution, "charge", "--not-done", "--why", "x"]):
        done = invoke("journal", *arguments, *dsn)
        assert done.exit_code == 1
        assert "ends as denied" in done.stderr
    done = invoke("journal", "resolve", execution, "charge", "--not-done", "--why", "x", "--later", *dsn)
    assert done.exit_code == 0


def test_a_resolution_that_is_none(place: Place) -> None:
    execution = place.in_doubt(node_text())
    for arguments in (
        ["--why", "x"],
        ["--not-done"],
        ["--not-done", "--failed", "timeout", "--why", "x"],
        ["--result", "1", "--failed", "timeout", "--why", "x"],
        ["--not-done", "--why", "  "],
        ["--not-done", "--why", "\udcff"],
        ["--not-done", "--why", "x" * 3_000],
        ["--not-done", "--why", "x", "--by", ""],
    ):
        assert invoke("journal", "resolve", execution, "charge", *arguments).exit_code == 2, arguments
    assert "RESOLVED" not in kinds(place, execution)


def test_what_is_not_in_doubt_is_not_resolved(place: Place) -> None:
    done = invoke("journal", "resolve", place.run(node_text()), "charge", "--not-done", "--why", "x")
    assert done.exit_code == 1
    assert "has no step in doubt: it is ended" in done.stderr
    done = invoke("journal", "resolve", place.in_doubt(node_text()), "chrge", "--not-done", "--why", "x")
    assert done.exit_code == 1
    assert "in doubt: `charge`" in done.stderr


def test_a_run_that_asks_for_something_else_cannot_be_resolved(place: Place) -> None:
    execution = place.left(node_text())
    with place.journal() as journal:
        run = journal.take_over(execution, "python")
        run.append(Entry(Kind.DIVERGENCE, "charge", "custom", body={"asked": "a", "recorded": "b"}, at_us=1))
        run.commit(Status.IN_DOUBT)
    assert "a request that differs from the journal" in invoke("journal", "show", execution).stdout
    done = invoke("journal", "resolve", execution, "charge", "--not-done", "--why", "x")
    assert done.exit_code == 1
    assert "please report it" in done.stderr


def test_what_an_earlier_master_key_wrapped_stays_readable(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_SECRET_FIRST_KEY", "the first key of all")
    monkeypatch.setenv("VESPER_SECRET_SECOND_KEY", "the second one")
    place.settings('key_secret = "first_key"\n')
    execution = place.run(node_text(sensitive=True))
    place.settings('key_secret = "second_key"\n')
    done = invoke("journal", "show", execution, "--reveal")
    assert done.exit_code == 1
    assert "among `earlier_key_secrets` under [journal]" in done.stderr
    place.settings('key_secret = "second_key"\nearlier_key_secrets = ["first_key"]\n')
    assert 'receipt: "ch_ann"' in invoke("journal", "show", execution, "--reveal").stdout


# -- recover --------------------------------------------------------------------------------------


def test_recovery_finishes_what_it_may(place: Place) -> None:
    keyed = place.left(node_text("keyed_v1", "keyed"), "kim")
    receipt = place.left(node_text("txn_v1", "txn"), "tim")
    unsafe = place.left(node_text("unsafe_v1"), "uli")
    done = invoke("journal", "recover", "--engine", "interp")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[:4] == [
        f"{keyed[:18]}  keyed_v1  returned",
        f"{receipt[:18]}  txn_v1  returned",
        f"{unsafe[:18]}  unsafe_v1  in doubt: charge: it may have been performed, and it must not be performed twice",
        "2 executions finished",
    ]
    assert "1 execution is in doubt" in done.stdout
    assert place.charged == ["kim", "tim"]
    assert json.loads(invoke("journal", "list", "--node", "txn", "--format", "json").stdout)[0]["engine"] == "interp"
    done = invoke("journal", "recover")
    assert done.exit_code == 0
    assert "no execution is unfinished" in done.stdout


def test_recovery_leaves_alone_what_it_lacks_the_effects_for(place: Place) -> None:
    execution = place.left(node_text(effect_class="keyed"))
    charge = registered()["keyed_charge"]
    unregister("keyed_charge")
    done = invoke("journal", "recover")
    assert done.exit_code == 1
    assert "cannot be finished" in done.stdout
    assert "`keyed_charge`, which nobody registered here" in done.stdout
    assert kinds(place, execution)[-1] == "INTENT"  # whether it was performed is still for the key to say
    effect("keyed_charge", effect_class="keyed")(charge.function)
    assert invoke("journal", "recover").exit_code == 0
    assert kinds(place, execution)[-1] == "END"
    assert place.charged == ["bob"]


def test_nothing_is_resolved_where_it_cannot_be_finished_for_want_of_effects(place: Place) -> None:
    execution = place.in_doubt(node_text())
    before = kinds(place, execution)
    unregister("known")
    words = ["journal", "resolve", execution, "charge", "--result", RESULT, "--why", "seen"]
    done = invoke(*words)
    assert done.exit_code == 1
    assert "`known`, which nobody registered here" in done.stderr
    assert kinds(place, execution) == before
    assert invoke(*words, "--later").exit_code == 0
    assert kinds(place, execution)[-1] == "RESOLVED"


def test_recovery_of_so_many(place: Place) -> None:
    for customer in ("a", "b", "c"):
        place.left(node_text(effect_class="keyed"), customer)
    assert "2 executions finished" in invoke("journal", "recover", "--limit", "2").stdout
    assert place.charged == ["a", "b"]


def test_one_that_is_broken_does_not_stop_the_others(place: Place) -> None:
    broken = place.left(node_text(effect_class="keyed"), "a")
    whole = place.left(node_text(effect_class="keyed"), "b")
    change(place, "UPDATE vesper_commits SET hashes = zeroblob(length(hashes)) WHERE place < ?", 2 * PLACES)
    done = invoke("journal", "recover")
    assert done.exit_code == 1
    assert f"{broken[:18]}  charge_v1  cannot be finished: " in done.stdout
    assert f"{whole[:18]}  charge_v1  returned" in done.stdout


def test_an_engine_that_is_not_there(place: Place) -> None:
    place.left(node_text(effect_class="keyed"))
    change(place, "UPDATE vesper_executions SET engine = 'jit9'")
    done = invoke("journal", "recover")
    assert done.exit_code == 1
    assert "the engine `jit9`, which this Vesper lacks" in done.stdout
    assert invoke("journal", "recover", "--engine", "python").exit_code == 0


# -- prune, erase, verify -------------------------------------------------------------------------


def test_pruning_says_how_many_and_asks(place: Place) -> None:
    place.run(node_text())
    place.run(node_text())
    doubtful = place.in_doubt(node_text())
    done = invoke("journal", "prune", "--older-than", "0s", answer="n\n")
    assert done.exit_code == 1
    assert "2 executions ended before" in done.stdout
    assert len(json.loads(invoke("journal", "list", "--format", "json").stdout)) == 3
    done = invoke("journal", "prune", "--older-than", "0s", answer="y\n")
    assert done.exit_code == 0
    assert "deleted 2 executions" in done.stdout
    (left,) = json.loads(invoke("journal", "list", "--format", "json").stdout)
    assert left["execution"] == doubtful


def test_pruning_of_one_node(place: Place) -> None:
    for node_id in ("charge_v1", "charge_v2", "refund_v1"):
        place.run(node_text(node_id))
    assert "no execution ended before" in invoke("journal", "prune", "--older-than", "1d", "--yes").stdout
    assert (
        "deleted 2 executions" in invoke("journal", "prune", "--older-than", "0s", "--node", "charge", "--yes").stdout
    )
    (left,) = json.loads(invoke("journal", "list", "--format", "json").stdout)
    assert left["node"] == "refund_v1"
    assert invoke("journal", "prune", "--older-than", "0s", "--node", "refnd_v1", "--yes").exit_code == 1


@pytest.mark.parametrize("age", ["", "30", "-1d", "30 days", "1e9d"])
def test_an_age_that_is_none(place: Place, age: str) -> None:
    assert invoke("journal", "prune", "--older-than", age, "--yes").exit_code == 2


def test_what_was_erased_is_gone(place: Place) -> None:
    execution = place.run(node_text(sensitive=True), customer="carol")
    assert invoke("journal", "erase", execution, answer="n\n").exit_code == 1
    assert "carol" in invoke("journal", "show", execution, "--reveal").stdout
    done = invoke("journal", "erase", execution, answer="y\n")
    assert done.exit_code == 0
    assert "erased" in done.stdout
    said = invoke("journal", "show", execution, "--reveal").stdout
    assert "<erased>" in said
    assert "carol" not in said
    assert "ended: returned" in said
    assert '"<erased>"' in invoke("journal", "show", execution, "--reveal", "--format", "json").stdout
    assert "it was deleted earlier" in invoke("journal", "erase", execution, "--yes").stdout
    assert invoke("journal", "verify", execution).exit_code == 0


def test_erasing_what_is_not_sensitive_is_refused(place: Place) -> None:
    done = invoke("journal", "erase", place.run(node_text()), "--yes")
    assert done.exit_code == 1
    assert "is not sensitive" in done.stderr


def test_erasing_what_has_not_ended_says_what_it_means(place: Place) -> None:
    execution = place.in_doubt(node_text(sensitive=True))
    done = invoke("journal", "erase", execution, "--yes")
    assert done.exit_code == 0
    assert "without its key it cannot be finished" in done.stderr
    assert "<erased>" in invoke("journal", "show", execution).stdout
    done = invoke("journal", "resolve", execution, "charge", "--not-done", "--why", "x")
    assert done.exit_code == 1
    assert "its key was deleted" in done.stderr


def test_what_cannot_be_read_can_be_erased(place: Place) -> None:
    execution = place.run(node_text(sensitive=True), customer="carol")
    change(place, "UPDATE vesper_commits SET hashes = zeroblob(length(hashes))")
    done = invoke("journal", "erase", execution, "--yes")
    assert done.exit_code == 0
    assert "is broken at entry 1" in done.stderr
    assert run_statement(place.folder / "journal.db", "SELECT COUNT(*) FROM vesper_keys") == [(0,)]


def test_what_somebody_did_by_hand_is_audited(place: Place) -> None:
    execution = place.in_doubt(node_text(sensitive=True))
    by = ["--by", "zoe"]
    invoke("journal", "resolve", execution, "charge", "--result", RESULT, "--why", "seen", *by)
    invoke("journal", "erase", execution, "--yes", *by)
    invoke("journal", "prune", "--older-than", "0s", "--yes", *by)
    with place.journal() as journal:
        events = list(journal.audit_events())
    assert [each["action"] for each in events] == ["journal_resolve", "journal_erase", "journal_prune"]
    assert all("zoe" in str(each["fields"]) for each in events)
    assert [each["node_id"] for each in events] == ["charge_v1", "charge_v1", ""]
    assert "ch_7" not in str(events)


def test_a_chain_that_is_whole(place: Place) -> None:
    execution = place.run(node_text())
    place.in_doubt(node_text())
    assert invoke("journal", "verify").stdout == "2 executions checked: nothing was changed\n"
    assert invoke("journal", "verify", execution).stdout.startswith("1 execution checked")


def _changed(lines: bytes) -> bytes:
    return lines.replace(b"10.00", b"99.00")


def _cut(lines: bytes) -> bytes:
    return lines.rpartition(b"\n")[0]


@pytest.mark.parametrize("damage", [_changed, _cut], ids=["changed", "cut"])
def test_a_chain_that_is_broken_is_named(place: Place, damage: Callable[[bytes], bytes]) -> None:
    place.run(node_text())
    execution = place.run(node_text())
    first = 2 * PLACES + 1
    found = run_statement(place.folder / "journal.db", "SELECT lines FROM vesper_commits WHERE place = ?", (first,))
    lines = found[0][0]
    assert isinstance(lines, bytes)
    assert damage(lines) != lines
    change(place, "UPDATE vesper_commits SET lines = ? WHERE place = ?", damage(lines), first)
    for arguments in (["verify"], ["verify", execution], ["show", execution]):
        done = invoke("journal", *arguments)
        assert done.exit_code == 1
        assert f"the journal of execution {execution} is broken at entry 1: " in done.stderr


def test_a_row_that_was_removed_is_named(place: Place) -> None:
    execution = place.run(node_text())
    change(place, "DELETE FROM vesper_commits WHERE place > ?", PLACES + 1)
    done = invoke("journal", "verify")
    assert done.exit_code == 1
    assert f"execution {execution} is broken at entry" in done.stderr


# -- whole processes ------------------------------------------------------------------------------

_MODULE = """\
import os
import signal
import vesper

@vesper.effect("known", effect_class="read")
def known(customer):
    return 1

@vesper.effect("unsafe_charge")
def charge(customer, amount):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "charge_v1.vsp").write_text(node_text())
    (tmp_path / "deadly_effects.py").write_text(_MODULE)
    (tmp_path / "vesper.toml").write_text(
        '[[grants]]\nnodes = ["charge"]\nallow = ["effect.call.*"]\n[effects]\nmodules = ["deadly_effects"]\n'
    )

    def vesper(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "vesper", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    ran = vesper("run", "charge", "-i", "event_id=e1", "-i", "customer=ann", "-i", "amount=7.50")
    assert ran.returncode == -signal.SIGKILL
    recovered = vesper("journal", "recover")
    assert recovered.returncode == 1, recovered.stderr
    prefix = recovered.stdout.split()[0]
    resolved = vesper("journal", "resolve", prefix, "charge", "--result", RESULT, "--why", "seen")
    assert resolved.returncode == 0, resolved.stderr
    assert "receipt  ch_7" in resolved.stdout


def test_every_command_on_postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: Postgres) -> None:
    monkeypatch.chdir(tmp_path)
    with a_place(tmp_path, postgres.new_database()) as place:
        place.run(node_text(audit="basic"))
        hidden = place.run(node_text("hidden_v1", sensitive=True))
        execution = place.left(node_text())
        assert invoke("journal", "recover").exit_code == 1
        found = json.loads(invoke("journal", "list", "--node", "charge", "--format", "json").stdout)
        assert [each["status"] for each in found] == ["in_doubt", "ended"]
        assert "in doubt: charge" in invoke("journal", "show", execution).stdout
        done = invoke("journal", "resolve", execution, "charge", "--not-done", "--why", "x")
        assert done.exit_code == 0, done.output
        assert place.charged == ["ann", "ann", "bob"]
        assert invoke("journal", "erase", hidden, "--yes").exit_code == 0
        assert "3 executions checked" in invoke("journal", "verify").stdout
        assert invoke("audit", "verify").exit_code == 0
        assert "journal_resolve" in invoke("audit", "list").stdout
        assert "wrote" in invoke("audit", "export", "-o", "audit.jsonl").stdout
        assert invoke("audit", "verify", "--file", "audit.jsonl").exit_code == 0
        assert "deleted 3" in invoke("journal", "prune", "--older-than", "0s", "--yes").stdout


def test_a_server_that_is_not_there(place: Place) -> None:
    done = invoke("journal", "list", "--journal", f"postgresql://u:hush@127.0.0.1:{free_port()}/x")
    assert done.exit_code == 1
    assert "cannot be reached" in done.stderr
    assert "hush" not in done.output
