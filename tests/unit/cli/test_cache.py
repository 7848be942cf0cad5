"""`vesper cache`: what it says, and that it empties what it is told to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import vesper
from tests.unit.api.given import NODES
from vesper.cache import entries as module
from vesper.cli.main import vesper as command


def said(*arguments: str, exit_code: int = 0) -> str:
    found = CliRunner().invoke(command, ["cache", *arguments])
    assert found.exit_code == exit_code, found.output
    return found.output


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VESPER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VESPER_CACHE_KEY", str(tmp_path / "key"))
    monkeypatch.delenv("VESPER_CONFIG", raising=False)
    monkeypatch.setattr(module, "_opened", {})
    monkeypatch.setattr("vesper.api.default_hosts._results", {})  # those of other tests in this process
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_counts_what_helps_and_empties_what_it_is_told_to(folder: Path) -> None:
    for _ in range(3):
        vesper.load(NODES / "payments" / "payment_decision_v1.vsp", engine="interp")
    found = json.loads(said("stats", "--format", "json"))
    assert list(found) == ["l1", "l2", "l3"]
    l2 = found["l2"]
    assert (l2["entries"], l2["hits"], l2["misses"], l2["refused"]) == (1, 2, 1, 0)
    assert l2["bytes"] > 1000
    assert l2["where"] == str(folder / "cache" / "nodes")
    assert json.loads(said("clear", "--level", "l3", "--format", "json")) == {"l3": 0}
    assert json.loads(said("clear", "--level", "l2", "--format", "json")) == {"l2": 1}
    assert json.loads(said("stats", "--level", "l2", "--format", "json"))["l2"]["entries"] == 0


def test_it_is_for_people_too(folder: Path) -> None:
    text = said("stats")
    assert "L2, nodes on disk (all processes)" in text
    assert "256.0 MiB" in text
    assert "L2, nodes on disk (all processes): 0 removed" in said("clear")


def test_it_says_why_there_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_CACHE", "off")
    assert "VESPER_CACHE=off" in said("stats", "--level", "l2")
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    monkeypatch.setenv("VESPER_CACHE", str(folder / "cache"))
    assert "others may write" in said("stats", "--level", "l2")


def test_results_are_said_with_their_settings_and_a_redis_that_is_away(folder: Path) -> None:
    (folder / "vesper.toml").write_text(
        '[cache.results]\nnodes = ["quote"]\nurl = "redis://127.0.0.1:1/0"\ntimeout = "100ms"\n'
    )
    found = json.loads(said("stats", "--level", "l3", "--format", "json"))["l3"]
    assert (found["nodes"], found["ttl"], found["max_bytes"]) == (["quote"], 300.0, 64 << 20)
    assert found["shared"] == "redis://127.0.0.1:1/0"
    assert "cannot be used" in found["shared_why_not"]
    said("clear", "--level", "l3", exit_code=1)
    (folder / "vesper.toml").write_text("[cache.results]\nnods = []\n")
    assert "no such setting" in said("stats", exit_code=1)


def test_the_settings_can_be_named(folder: Path) -> None:
    (folder / "other.toml").write_text('[cache.results]\nnodes = ["quote"]\nttl = "7s"\n', encoding="utf-8")
    assert json.loads(said("stats", "--format", "json"))["l3"].get("ttl") != 7.0
    assert json.loads(said("stats", "--config", "other.toml", "--format", "json"))["l3"]["ttl"] == 7.0
    said("clear", "--config", "other.toml")
    (folder / "other.toml").write_text("[cache.reslts]\n", encoding="utf-8")
    assert "did you mean `results`?" in said("stats", "--config", "other.toml", exit_code=1)
