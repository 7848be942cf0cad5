from __future__ import annotations

from pathlib import Path

import pytest

from vesper.config.locate import VARIABLE, config_for, may_have_table, nearest_config
from vesper.effects.settings import ConfigError


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The working directory and the folder of a node, neither below the other."""
    work, nodes = tmp_path / "work" / "inner", tmp_path / "nodes" / "inner"
    work.mkdir(parents=True)
    nodes.mkdir(parents=True)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(work)
    return work, nodes


def test_the_working_directory_takes_precedence_over_the_folder_of_the_node(folders: tuple[Path, Path]) -> None:
    work, nodes = folders
    node = nodes / "price_v1.vsp"
    assert nearest_config(node) is None
    (nodes.parent / "vesper.toml").write_text("", encoding="utf-8")
    assert nearest_config(node) == nodes.parent.resolve() / "vesper.toml"
    assert nearest_config() is None
    (work.parent / "vesper.toml").write_text("", encoding="utf-8")
    assert nearest_config(str(node)) == work.parent.resolve() / "vesper.toml"
    assert nearest_config() == work.parent.resolve() / "vesper.toml"


def test_the_variable_takes_precedence_over_folders_and_a_named_file_over_both(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, nodes = folders
    (work / "vesper.toml").write_text("", encoding="utf-8")
    monkeypatch.setenv(VARIABLE, str(work / "named.toml"))
    assert nearest_config(nodes / "price_v1.vsp") == work / "named.toml"
    assert nearest_config(explicit=work / "other.toml") == work / "other.toml"


def test_config_for_reads_the_file_or_returns_the_defaults(folders: tuple[Path, Path]) -> None:
    work, _ = folders
    default = config_for()
    assert default.path is None
    assert default.folder == work
    assert default.workers == 64
    (work / "vesper.toml").write_text("workers = 3\n", encoding="utf-8")
    assert config_for().workers == 3
    (work / "other.toml").write_text("workers = 4\n", encoding="utf-8")
    assert config_for(explicit=work / "other.toml").workers == 4
    with pytest.raises(ConfigError, match="cannot be read"):
        config_for(explicit=work / "missing.toml")


def test_a_table_is_searched_as_text(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    work, nodes = folders
    node = str(nodes / "price_v1.vsp")
    assert not may_have_table(node, "traces")
    (nodes / "vesper.toml").write_text("[traces]\nsample = 1\n", encoding="utf-8")
    assert may_have_table(node, "traces")
    assert not may_have_table(node, "cache")
    monkeypatch.setenv(VARIABLE, str(work / "missing.toml"))
    assert may_have_table(node, "cache")  # the reader reports that the file is missing
