"""`vesper topics` on real dead letters and pauses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.journalled import invoke
from tests.support.waiting import eventually
from tests.unit.topics.project import GROUP, NODE, TOPIC, Project, open_project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.chdir(tmp_path)
    with open_project(tmp_path, 'url = "outbox:"\ndatabase = "main"') as found:
        yield found


def bury(project: Project, *numbers: int) -> None:
    """Let messages end as dead letters."""
    for number in numbers:
        project.publish(number, "k", divisor=0)
    with project.consuming(attempts=1):
        eventually(lambda: len(project.letters()) == len(numbers))


def test_groups_with_lag_pause_and_dead_letters(project: Project) -> None:
    bury(project, 1)
    project.publish(2)
    listed = invoke("topics", "list", "--nodes", ".")
    assert [line.split() for line in listed.stdout.splitlines()] == [
        ["topic", "in", "group", "node", "lag", "dead", "state"],
        [TOPIC, "outbox", GROUP, GROUP, "1", "1", "active"],
    ]
    assert invoke("topics", "pause", TOPIC, "--by", "ada", "--why", "the ledger moves").stdout == "`orders` is paused\n"
    assert "was paused already" in invoke("topics", "pause", TOPIC, "--by", "ada").stdout
    (line,) = json.loads(invoke("topics", "show", TOPIC, "--nodes", ".", "--format", "json").stdout)
    assert (line["paused_by"], line["why"], line["lag"], line["dead"]) == ("ada", "the ledger moves", 1, 1)
    assert "by ada: the ledger moves" in invoke("topics", "list", "--nodes", ".").stdout
    assert invoke("topics", "pause", TOPIC, "--group", GROUP, "--by", "ada").exit_code == 0
    resumed = invoke("topics", "resume", TOPIC, "--by", "ada")
    assert resumed.stdout == "`orders` takes messages again\n"
    assert "still paused: `orders`, group ledger_v1," in resumed.stderr
    assert "was not paused" in invoke("topics", "resume", TOPIC, "--by", "ada").stdout
    assert "no topic `other`" in invoke("topics", "show", "other", "--nodes", ".").stderr


def test_dead_letters_are_listed_requeued_and_dropped(project: Project) -> None:
    assert invoke("topics", "dead", TOPIC).stdout == "no dead letters of `orders`\n"
    bury(project, 1, 2)
    shown = invoke("topics", "dead", TOPIC).stdout
    assert "m1  ledger_v1" in shown
    assert "division_by_zero after 1 attempt" in shown
    assert '{"divisor":0,"number":1}' in shown
    first, second = json.loads(invoke("topics", "dead", TOPIC, "--format", "json").stdout)
    assert (first["id"], second["code"], first["died_at"][:2]) == ("m1", "division_by_zero", "20")
    assert invoke("topics", "requeue", TOPIC).exit_code == 2
    assert "no dead letter m9" in invoke("topics", "requeue", TOPIC, "m9", "--by", "ada").stderr
    done = invoke("topics", "requeue", TOPIC, "m1", "--by", "ada")
    assert (done.exit_code, done.stdout) == (0, "m1 is published again as m1#requeued-1@ledger_v1\n")
    assert project.waiting() == 1
    assert invoke("topics", "drop", TOPIC, "m2", answer="n\n").exit_code == 1
    assert invoke("topics", "drop", TOPIC, "--all", "--yes", "--by", "ada").stdout == "m2 is deleted\n"
    assert project.letters() == []
    actions = [each["action"] for each in project.host.journal.audit_events()]
    assert actions == ["topic_requeue", "topic_drop"]


def test_sensitive_letters_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    node = NODE.replace("capabilities_required:", "sensitive_data: [payload]\n  capabilities_required:")
    with open_project(tmp_path, 'url = "outbox:"\ndatabase = "main"', node) as project:
        bury(project, 1)
        for arguments in ((), ("--format", "json")):
            assert "divisor" not in invoke("topics", "dead", TOPIC, *arguments).stdout
        assert "divisor" in invoke("topics", "dead", TOPIC, "--reveal").stdout


def test_without_topics_the_list_says_what_to_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "add [topics.NAME] to vesper.toml" in invoke("topics", "list", "--nodes", ".").stdout
