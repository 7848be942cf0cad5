"""`vesper work` continues waiting runs, and ends on SIGTERM."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from tests.support.journalled import invoke
from tests.support.waiting import eventually
from tests.unit.host.recovery.sleeping import SLEEPER
from vesper.journal.journal import Status, open_journal

GRANTS = '[[grants]]\nnodes = ["*"]\nallow = ["clock.*"]\n'


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nodes").mkdir()
    Path("nodes/sleeper_v1.vsp").write_text(SLEEPER.lstrip("\n"), encoding="utf-8")
    Path("vesper.toml").write_text(GRANTS, encoding="utf-8")


def test_work_wakes_and_finishes_runs(tmp_path: Path) -> None:
    assert invoke("run", "sleeper_v1", "-i", "event_id=e1", "-i", "for=PT0.01S").exit_code == 0
    found: list[Status] = []

    def stop_when_ended() -> None:
        journal = open_journal(f"sqlite:{tmp_path / '.vesper' / 'journal.db'}")
        try:
            eventually(lambda: journal.find(limit=1)[0].status is Status.ENDED)
            found.append(journal.find(limit=1)[0].status)
        finally:
            journal.close()
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    watcher = threading.Thread(target=stop_when_ended)
    watcher.start()
    done = invoke("work", "--engine", "python")
    watcher.join()
    assert (done.exit_code, found) == (0, [Status.ENDED]), done.output
    assert "working on 1 node; Ctrl-C ends" in done.stderr
    assert signal.getsignal(signal.SIGTERM) is before


def test_work_without_a_keeper_is_refused() -> None:
    Path("vesper.toml").write_text(f"[keeper]\nenabled = false\n{GRANTS}", encoding="utf-8")
    done = invoke("work")
    assert (done.exit_code, "nothing would be woken" in done.stderr) == (1, True)


def test_a_folder_that_does_not_exist_is_refused() -> None:
    done = invoke("work", "nowhere")
    assert (done.exit_code, "there is no file or folder `nowhere`" in done.stderr) == (2, True)
