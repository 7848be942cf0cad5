"""The page of batch jobs: running, stopped, stale and damaged ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.dashboard import client_of, context_for
from vesper.batch import job as jobs
from vesper.batch.files import write_part
from vesper.batch.unfinished import UnfinishedJob
from vesper.cli.main import vesper
from vesper.config.settings import default_config
from vesper.dashboard.app import whole_site
from vesper.dashboard.pages import batches
from vesper.dashboard.pages.batches import Batches, read_batches
from vesper.dashboard.stores import Stores

SITE = whole_site(["vesper.dashboard.pages.batches"])
NODE = """\
node_id: double_v1
type: function
intent: Double a number
inputs:
  amount: integer
outputs:
  success: {double: integer}
flow:
  - operation: return
    success: {double: amount * 2}
"""


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a job that was stopped after 4 of 10 rows."""
    made = tmp_path_factory.mktemp("project")
    (made / "nodes").mkdir()
    (made / "nodes" / "double_v1.vsp").write_text(NODE)
    (made / "in.csv").write_text("amount\n1\n2\nx\n4\n" + "5\n" * 6)

    def stopping(part: Path, table: Any, kind: str) -> None:
        if part.name.startswith("000002"):
            raise KeyboardInterrupt
        write_part(part, table, kind)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        patch.setattr(jobs, "ROWS_A_PART", 2)
        patch.setattr(jobs, "write_part", stopping)
        done = CliRunner().invoke(vesper, ["run", "double_v1", "--batch", "in.csv", "-o", "out.csv"])
    assert "--resume continues" in done.output
    return made


@pytest.fixture
def folder(stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project, with the file that its job reads."""
    copy = tmp_path / "copy"
    shutil.copytree(stopped, copy)
    state = copy / "out.csv.parts" / "state.json"
    state.write_text(state.read_text().replace(str(stopped), str(copy)))
    monkeypatch.chdir(copy)
    monkeypatch.setattr(jobs, "ROWS_A_PART", 2)
    return copy


def read(folder: Path) -> Batches:
    stores = Stores(default_config(folder))
    try:
        return read_batches(context_for(stores))
    finally:
        stores.close()


def only(folder: Path) -> UnfinishedJob:
    (found,) = read(folder).jobs
    return found


def test_a_stopped_job_is_shown_with_how_it_continues(folder: Path) -> None:
    job = only(folder)
    assert (job.node, job.source, job.out, job.folder) == ("double_v1", "in.csv", "out.csv", "out.csv.parts")
    assert (job.rows, job.parts) == (4, 2)
    assert job.share is not None
    assert 0 < job.share <= 1
    assert job.errors == {"failed bad_input": 1}
    assert (job.is_running, job.obstacles) == (False, ())
    assert job.command == "vesper run double_v1 --batch in.csv -o out.csv --resume"
    with client_of(folder, SITE) as client:
        page = client.get("/batches").text
    assert "stopped, can continue" in page
    assert "reload.js" not in page
    done = CliRunner().invoke(vesper, job.command.split()[1:])
    assert "10 rows (4 of them earlier)" in done.output
    assert read(folder).jobs == ()


def test_a_job_is_not_stopped_by_being_looked_at(folder: Path) -> None:
    job = jobs.Job(folder / "in.csv", folder / "out.csv", "double_v1", "", {}, "", lambda *_: None)
    with jobs.claim(job.folder, job.out):
        assert only(folder).is_running
        with client_of(folder, SITE) as client:
            assert "reload.js" in client.get("/batches").text
    assert not only(folder).is_running


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda folder: (folder / "in.csv").write_text("amount\n1\n"), "the file that it reads has changed"),
        (lambda folder: (folder / "in.csv").unlink(), "the file that it reads is gone"),
        (
            lambda folder: (folder / "nodes" / "double_v1.vsp").write_text(NODE.replace("* 2", "* 3")),
            "the node has changed",
        ),
        (lambda folder: (folder / "nodes" / "double_v1.vsp").write_text("node_id: double_v1"), "the node has changed"),
        (lambda folder: next((folder / "out.csv.parts").glob("000001*")).unlink(), "a part is gone"),
        (lambda folder: (folder / "out.csv.parts" / "state.json").write_text("{"), "is damaged"),
    ],
    ids=["file", "no file", "node", "bad node", "part", "state"],
)  # fmt: skip
def test_a_stale_job_says_why(folder: Path, change: object, expected: str) -> None:
    change(folder)  # type: ignore[operator]
    job = only(folder)
    assert not job.is_running
    assert expected in " ".join(job.obstacles)
    with client_of(folder, SITE) as client:
        assert "Cannot continue" in client.get("/batches").text


def test_a_state_of_an_earlier_vesper_has_no_share(folder: Path) -> None:
    path = folder / "out.csv.parts" / "state.json"
    state: Mapping[str, object] = json.loads(path.read_text())
    path.write_text(json.dumps({name: each for name, each in state.items() if name != "share"}))
    assert (only(folder).share, only(folder).obstacles) == (None, ())


def test_other_folders_are_no_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spare.parts").mkdir()
    (tmp_path / ".hidden" / "x.csv.parts").mkdir(parents=True)
    with client_of(tmp_path, SITE) as client:
        assert "vesper run NODE --batch FILE" in client.get("/batches").text
    monkeypatch.setattr(batches, "_MAX_FOLDERS", 1)
    assert not read(tmp_path).is_complete
