"""Diagnostics of `vesper check` about file names and duplicate ids."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from vesper.cli.check.command import command
from vesper.cli.main import vesper as cli
from vesper.repository.starter import starter


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes").mkdir()
    return tmp_path


def write(name: str, node_id: str, *changes: tuple[str, str]) -> None:
    text = starter(node_id, "function")
    for old, new in changes:
        text = text.replace(old, new)
    path = Path("nodes") / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    os.utime(path, (1_700_000_000, 1_700_000_000))


def check(*paths: str) -> tuple[int, list[tuple[str, str, int, str]]]:
    done = CliRunner().invoke(command, [*paths, "--format", "json"])
    found: list[dict[str, Any]] = json.loads(done.stdout)["diagnostics"]
    return done.exit_code, [(each["code"], each["path"], each["line"], each["headline"]) for each in found]


def test_file_not_named_after_its_node_is_reported(folder: Path) -> None:
    write("fee.vsp", "fee_v1")
    warning = ("VSP1301", "nodes/fee.vsp", 1, "`fee.vsp` is not named after its node, `fee_v1`")
    for _ in ("checked", "from the cache"):
        assert check() == (0, [warning])
    text = CliRunner().invoke(cli, ["check"]).stderr
    assert "1 | node_id: fee_v1\n  |          ^^^^^^ declared here" in text
    assert "help: rename the file to `fee_v1.vsp`" in text
    (folder / "nodes/fee.vsp").rename("nodes/fee_v1.vsp")
    assert check() == (0, [])


def test_location_is_right_with_other_line_ends(folder: Path) -> None:
    write("odd.vsp", "fee_v1", ("node_id", "# ä\n# text\nnode_id"), ("\n", "\r\n"))
    for _ in ("checked", "from the cache"):
        assert check()[1][0][:3] == ("VSP1301", "nodes/odd.vsp", 3)


def test_duplicate_id_names_the_first_file(folder: Path) -> None:
    for part in ("a", "b", "c"):
        write(f"{part}/fee_v1.vsp", "fee_v1")
    headline = "`fee_v1` is declared in `nodes/a/fee_v1.vsp` too"
    wanted = [("VSP1302", f"nodes/{part}/fee_v1.vsp", 1, headline) for part in ("b", "c")]
    for _ in ("checked", "from the cache"):
        assert check() == (1, wanted)
    assert check("nodes/b") == (0, []), "only what is checked counts"


def test_node_with_errors_counts_for_duplicates(folder: Path) -> None:
    write("a/fee_v1.vsp", "fee_v1", ("amount * rate", "amount * rat"))
    write("b/fee_v1.vsp", "fee_v1")
    code, found = check()
    assert code == 1
    assert [each[:2] for each in found] == [("VSP1102", "nodes/a/fee_v1.vsp"), ("VSP1302", "nodes/b/fee_v1.vsp")]


def test_same_file_by_two_paths_is_one(folder: Path) -> None:
    write("fee_v1.vsp", "fee_v1")
    assert check("nodes", str(folder / "nodes")) == (0, [])


def test_invalid_id_is_reported_once(folder: Path) -> None:
    write("fee.vsp", "Fee")
    write("other.vsp", "Fee")
    assert [each[0] for each in check()[1]] == ["VSP0010", "VSP0010"]


def test_many_files_are_checked_on_all_processors(folder: Path) -> None:
    for number in range(60):
        write(f"fee_{number}_v1.vsp", f"fee_{number % 59}_v1")
    assert [each[:2] for each in check()[1]] == [("VSP1302", "nodes/fee_59_v1.vsp")]


def test_location_after_a_fix_is_in_the_new_text(folder: Path) -> None:
    write("odd.vsp", "fee_v1", ("node_id: fee_v1\n", ""), ("fee >= 0", "fee >= 0 && true"))
    path = Path("nodes/odd.vsp")
    path.write_text(path.read_text(encoding="utf-8") + "node_id: fee_v1\n", encoding="utf-8")
    done = CliRunner().invoke(command, ["--fix", "--format", "json"])
    shown = json.loads(done.stdout)
    assert len(shown["fixed"]) == 1
    (warning,) = shown["diagnostics"]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[warning["line"] - 1][warning["column"] - 1 : warning["end_column"] - 1] == "fee_v1"


def handler(name: str, path: str = "/fees/{currency}") -> None:
    text = starter(name, "http_handler").replace(f"/{name.rpartition('_v')[0]}/{{currency}}", path)
    (Path("nodes") / f"{name}.vsp").write_text(text, encoding="utf-8")
    os.utime(Path("nodes") / f"{name}.vsp", (1_700_000_000, 1_700_000_000))


def test_route_of_two_nodes_is_reported_from_the_cache_too(folder: Path) -> None:
    handler("fee_v1")
    handler("rate_v1")
    handler("other_v1", "/fees/{currency}/last")
    place = starter("rate_v1", "http_handler").split("\n").index("  path: /rate/{currency}") + 1
    expected = "`POST /fees/{}` is the route of `fee_v1` in `nodes/fee_v1.vsp` too"
    for _ in range(2):
        assert check() == (1, [("VSP1313", "nodes/rate_v1.vsp", place, expected)])


def test_versions_of_a_node_share_a_route(folder: Path) -> None:
    handler("fee_v1")
    handler("fee_v2")
    assert check() == (0, [])
