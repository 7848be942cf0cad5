"""The pages of a server: what anonymous callers see, and a journal that cannot be written."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from vesper.host.background_work import WorkState
from vesper.journal.journal import JournalError
from vesper.serve.builtins import Builtins


class Journal:
    checks = 0
    is_full = False

    def check_writable(self) -> None:
        self.checks += 1
        if self.is_full:
            raise JournalError("/srv/journal.db: the disk is full")

    def find(self, **_: object) -> list[object]:
        return [None, None]


def service(journal: Journal, killed: bool = False) -> Any:
    switch = SimpleNamespace(who="alice@example.com", why="an incident", at_us=1) if killed else None
    return SimpleNamespace(
        has_effects=True,
        nodes=[],
        work_problems={},
        work=SimpleNamespace(states=lambda: [WorkState("keeper", True, "/srv/journal.db is away")]),
        host=SimpleNamespace(journal=journal, redact=str),
        routes=SimpleNamespace(migration=SimpleNamespace(kill_switch=switch, contact_age_seconds=0.5)),
    )


def page(builtins: Builtins, name: str, of: Any, is_named: bool = False) -> tuple[int, Any]:
    status, _, body = builtins.page(name, of, 1, is_named, None)
    return status, json.loads(body)


def test_anonymous_callers_see_no_names_of_people() -> None:
    builtins, killed = Builtins(lambda: {"queued": 0}), service(Journal(), killed=True)
    status, ready = page(builtins, "/readyz", killed)
    assert (status, ready["is_killed"], ready["in_doubt"]) == (200, True, 2)
    for name in ("/readyz", "/status"):
        shown = json.dumps(page(builtins, name, killed))
        assert "alice" not in shown
        assert "/srv" not in shown
    assert page(builtins, "/status", killed, is_named=True)[1]["kill_switch"]["who"] == "alice@example.com"


def test_a_journal_that_cannot_be_written_is_not_ready_and_its_place_stays_in_the_log() -> None:
    journal = Journal()
    journal.is_full = True
    status, ready = page(Builtins(dict), "/readyz", service(journal))
    assert (status, ready["is_ready"], ready["journal"], ready["in_doubt"]) == (503, False, "unavailable", None)
    assert "/srv" not in json.dumps(ready)


def test_many_requests_share_one_check_of_the_journal() -> None:
    journal = Journal()
    builtins, of = Builtins(dict), service(journal)
    for _ in range(100):
        assert page(builtins, "/readyz", of)[0] == 200
    assert journal.checks < 50
