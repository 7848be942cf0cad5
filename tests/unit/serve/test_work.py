"""Background work of a service: its files, and the versions that run."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import vesper
from tests.proofs.queues.queued_node import host_in
from tests.support.waiting import eventually
from vesper.config.settings import config_from
from vesper.serve.builtins import Builtins
from vesper.serve.control import Options
from vesper.serve.nodes import Service
from vesper.serve.work import Work, find_work_files

TICK = """\
node_id: tick_v{version}
type: scheduled_job
intent: Note the time
inputs: {{scheduled_at: timestamp}}
outputs: {{success: {{at: timestamp}}}}
flow: [{{return: {{at: scheduled_at}}}}]
schedule: {{cron: "0 0 1 1 *"}}
"""


def test_the_highest_version_of_a_job_is_scheduled(tmp_path: Path) -> None:
    with host_in(tmp_path, lambda event, _: event) as host:
        nodes = []
        for version in (10, 9, 1):
            path = tmp_path / f"tick_v{version}.vsp"
            path.write_text(TICK.format(version=version))
            nodes.append(vesper.load(path, engine="python", host=host))
        work = Work(host, nodes)
        work.start()
        try:
            eventually(lambda: [each.name for each in host.journal.due("schedule")] == ["tick_v10"])
        finally:
            assert work.stop(30)


def test_a_broken_work_file_is_reported_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for version, text in ((1, TICK), (2, TICK.replace("scheduled_at}}}}]", "nothing}}}}]"))):
        (tmp_path / f"tick_v{version}.vsp").write_text(text.format(version=version))
    function = TICK.replace("scheduled_job", "function").replace("tick", "plain").partition("schedule:")[0]
    (tmp_path / "plain_v1.vsp").write_text(function.format(version=1))
    config = config_from({"journal": {"dsn": f"sqlite:{tmp_path / 'journal.db'}"}}, tmp_path)
    options = Options((str(tmp_path),), engine="python", expose=("plain_v1",))
    with caplog.at_level(logging.ERROR, "vesper.serve"):
        service = Service(config, options, None)
    try:
        assert [each.id for each in service.background] == ["tick_v1"]
        assert "tick_v2.vsp is left out of the background work" in caplog.text
        named, unnamed = (Builtins(dict).page("/status", service, 1, is_named, None)[2] for is_named in (True, False))
        assert b"nothing" in named
        assert b'"work_problems": [{"node": "tick_v2", "problem": null}]' in unnamed
    finally:
        service.close(0.0)


@pytest.mark.parametrize("key", ["queue:", "queue :", '"queue":', "'queue' :"])
def test_a_file_with_a_queue_is_found_however_its_key_is_written(tmp_path: Path, key: str) -> None:
    (tmp_path / "work_v1.vsp").write_text(f"node_id: work_v1\n{key} {{}}\n")
    (tmp_path / "other_v1.vsp").write_text("node_id: other_v1\nintent: Stand in a queue\n")
    assert [each.name for each in find_work_files([tmp_path])] == ["work_v1.vsp"]
