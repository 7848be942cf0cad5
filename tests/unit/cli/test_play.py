"""`vesper play` serves one node of the folder on loopback, and opens the browser unless told not to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from vesper.cli.play.command import command
from vesper.config.settings import Config
from vesper.dashboard import process
from vesper.repository.starter import starter

ADDRESS = "http://127.0.0.1:9/play"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str | None]]:
    """Return what was served, in a folder with the node `fee_v1`."""
    found: list[tuple[Path, str | None]] = []

    def serve(_: Config, folder: Path, node: str | None, port: int, report: Callable[[str], None]) -> None:
        assert port == 0
        found.append((folder, node))
        report(ADDRESS)

    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(starter("fee_v1", "function"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VESPER_NODES", raising=False)
    monkeypatch.setattr(process, "serve_play", serve)
    return found


def test_the_address_is_printed_and_opened(
    served: list[tuple[Path, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", open_)
    ran = CliRunner().invoke(command, ["fee"])
    assert ran.output == f"playground at {ADDRESS}  (Ctrl-C ends it)\n"
    assert (opened, served) == ([ADDRESS], [(Path("nodes"), "fee_v1")])
    assert CliRunner().invoke(command, ["--no-browser"]).exit_code == 0
    assert (opened, served[1:]) == ([ADDRESS], [(Path("nodes"), None)])


def test_a_node_outside_the_folder_is_refused(served: list[tuple[Path, str | None]], tmp_path: Path) -> None:
    (tmp_path / "other_v1.vsp").write_text(starter("other_v1", "function"))
    ran = CliRunner().invoke(command, ["other_v1.vsp"])
    assert ran.exit_code == 2
    assert "name its folder with --nodes" in ran.output
    assert CliRunner().invoke(command, ["absent"]).exit_code == 2
    assert served == []
