"""The page about moving a node over, run as written: its Python brings the traffic, its sessions look at what came."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.support.console import ROOT, Command, check_printed, parse_session
from tests.support.journalled import invoke
from vesper.api.default_hosts import close_routes
from vesper.config.settings import config_from
from vesper.migration.router.alerts import Alerts

PAGE = (ROOT / "docs" / "how-to" / "roll-out-a-node.md").read_text(encoding="utf-8")
SESSIONS = [
    parse_session(found[1], PAGE.count("\n", 0, found.start(1)) + 1)
    for found in re.finditer(r"^```console moved\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
]
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder after the traffic of the page."""
    folder = tmp_path_factory.mktemp("moved")
    (folder / "nodes" / "payments").mkdir(parents=True)
    shutil.copy(ROOT / "nodes/payments/payment_decision_v1.vsp", folder / "nodes/payments")
    # On a slow machine, too, all of the traffic is followed.
    (folder / "vesper.toml").write_text('[migration]\nfollow_cpu = "6400 %"\n', encoding="utf-8")
    blocks = _PYTHON.findall(PAGE)
    assert len(blocks) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("VESPER_NODES", raising=False)
        patch.chdir(folder)
        names: dict[str, object] = {}
        for block in blocks:
            exec(compile(block, "roll-out-a-node.md", "exec"), names)
        close_routes()
    return folder


@pytest.mark.parametrize("session", SESSIONS, ids=[str(each[0].line) for each in SESSIONS])
def test_session(session: list[Command], moved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(moved, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")  # how many modes the traffic came in must not change the lines
    for command in session:
        done = invoke(*shlex.split(command.text)[1:])
        check_printed(command, done.output, done.exit_code)


def test_the_page_has_sessions() -> None:
    assert len(SESSIONS) == 7


def test_the_settings_of_the_page_about_alerts_are_taken(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "react-to-alerts.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    webhook = config_from(tomllib.loads(block), tmp_path).migration_settings().webhook
    assert webhook == "https://hooks.example.com/services/T0/B0/x"
    Alerts(webhook).close()
