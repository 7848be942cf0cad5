"""`vesper.toml`: what is read, and what a mistake in it is told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from vesper.config.code_folder import search_code_folder
from vesper.config.grants import judge
from vesper.config.settings import Config, config_from, read_config
from vesper.effects.settings import ConfigError
from vesper.host.host import Host
from vesper.testing.recorder import Recorder


def read(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "vesper.toml"
    path.write_text(text, encoding="utf-8")
    return read_config(path)


def test_an_empty_file_grants_nothing_and_keeps_its_journal_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "vesper.toml"
    path.write_text("", encoding="utf-8")
    config = read_config(path)
    assert config.grants == ()
    assert config.dsn(config.journal.dsn) == f"sqlite:{tmp_path.resolve() / '.vesper' / 'journal.db'}"


def test_relative_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    config = config_from({"journal": {"dsn": "sqlite:data/j.db", "lease": "5s", "retention": "30d"}}, tmp_path)
    assert config.dsn(config.journal.dsn) == f"sqlite:{tmp_path.resolve() / 'data' / 'j.db'}"
    assert (config.journal.lease, config.journal.retention) == (5.0, 30 * 86400.0)


@pytest.mark.parametrize(
    "text, line, said",
    [
        ('[journal]\ndsn = "mysql://x"\n', 2, "`sqlite:PATH` or `postgresql://…`"),
        ('[journal]\nlease = "10"\n', 2, "a duration such as"),
        ('[journal]\n\nleese = "10s"\n', 3, "did you mean `lease`?"),
        ("workers = 0\n", 1, "from 1 to 10,000"),
        ("workers = true\n", 1, "a whole number is expected, not True"),
        ("wrkers = 1\n", 1, "did you mean `workers`?"),
        ('[recovery]\nengine = "pyton"\n', 2, "did you mean `python`?"),
        ('[[grants]]\nnodes = ["a"]\nallow = ["database.read.x"]\n[[grants]]\nallow = []\n', 4, "`nodes` is missing"),
        ('[[grants]]\nnodes = ["a"]\nallow = ["databse.read.x"]\n', 3, "`databse.read.x` is no capability"),
        ("[grants]\nnodes = []\n", 1, "write `[[grants]]`"),
        ('[policies]\nurl = "http://x"\n', 2, "`memory:` or `redis://…`"),
        ("[effects]\nmodules = [1]\n", 2, "a list of texts"),
        ('[recovery]\nevery = "0s"\n', 2, "every 50ms at most"),
        ('[recovery]\nevery = "99999999999999999999d"\n', 2, "once a day at least"),
        ('[journal]\nlease = "99999999999999999999d"\n', 2, "a day at most"),
        ('[journal]\nretention = "99999999999999999999d"\n', 2, "36,500 days at most"),
        ('[providers.x]\nbase_ulr = "https://x"\n', 1, "`base_url` is missing: a text; is it meant by `base_ulr`?"),
        ('[journal]\nretantion = "30d"\n', 2, "did you mean `retention`?"),
        ('[journal]\nearlier_key_secrets = ["old"]\n', 2, "name it as `key_secret`"),
        ('[cach.results]\nnodes = ["a"]\n', 1, "did you mean `cache`?"),
        ('[events]\nurl = "memory:"\ndatabase = "main"\n', 3, "there is no [databases.main] for the outbox"),
        ('[topics.sold]\nurl = "memory:"\ndatabase = "main"\n', 3, "there is no [databases.main] for the outbox"),
        ('[[grants]]\nnodes = ["a"]\ndeny = ["filesystm"]\n', 3, "`filesystm` is no capability"),
        ('[[grants]]\nnodes = ["a"]\nallow = ["filesystem"]\n', 3, "`filesystem` is no capability"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert f"vesper.toml:{line}: " in message
    assert said in message
    assert message.splitlines()[-1].strip(" |").strip("^") == ""


def test_a_prefix_denies_all_below_it(tmp_path: Path) -> None:
    text = '[[grants]]\nnodes = ["*"]\nallow = ["*"]\ndeny = ["filesystem", "database.write"]\n'
    grants = read(tmp_path, text).grants
    for capability, is_allowed in (
        ("filesystem.write.reports", False),
        ("filesystem.read.reports", False),
        ("database.write.orders", False),
        ("database.read.orders", True),
    ):
        assert judge(capability, "n_v1", ["*"], [], grants).is_allowed is is_allowed


def test_what_is_no_toml_or_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no TOML"):
        read(tmp_path, "[journal\n")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_config(tmp_path / "other.toml")


@pytest.mark.parametrize(
    "text, said",
    [
        ("x = " + "[" * 100_000, "nested too deeply"),
        ("x = " + "1" * 5000, "no TOML: Exceeds the limit"),
        ("# " + "x" * (1 << 20), "is larger than 1,048,576 bytes"),
    ],
    ids=["deep", "digits", "large"],
)
def test_a_hostile_file_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(tmp_path, text)


def test_a_file_without_an_end_is_an_error() -> None:
    with pytest.raises(ConfigError, match="cannot be read: it is a device, and a regular file is needed"):
        read_config(Path("/dev/zero"))


def test_a_file_that_is_too_large_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: it is larger than 1,048,576 bytes"):
        read(tmp_path, "#" * (1 << 20) + "\n")


def test_no_password_is_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, '[policies]\nurl = "https://:hunter2@cache.internal/0"\n')
    assert "hunter2" not in str(caught.value)
    assert "cache.internal" in str(caught.value)


@pytest.mark.parametrize(
    "text,where",
    [
        ('[databases.main]\ndsn = "sqlite:a/../journal.db"\n', "databases.main.dsn"),
        ('[migration]\nstore = "sqlite:journal.db"\n', "migration.store"),
        ('[traces]\npath = "journal.db"\n', "traces.path"),
    ],
)
def test_the_file_of_the_journal_has_one_use(tmp_path: Path, text: str, where: str) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(ConfigError, match=rf"{where}: this is the file of the journal, which needs one of its own"):
        read(tmp_path, f'[journal]\ndsn = "sqlite:journal.db"\n{text}')
    read(tmp_path, f'[journal]\ndsn = "sqlite:other.db"\n{text}')


@pytest.mark.parametrize("given", ["vesper.toml", {"grants": []}, Path("vesper.toml")])
def test_what_are_no_settings_is_told(given: Any) -> None:
    with pytest.raises(TypeError, match=r"vesper\.Host\.from_file\(PATH\) reads them from a file"):
        Host(given)
    with pytest.raises(TypeError, match="a Recorder records what a Host performs"):
        Recorder(given, "case.yaml")


def test_modules_that_others_can_write_are_refused_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    config = config_from({"effects": {"modules": ["fx"]}}, tmp_path)
    module = tmp_path / "fx.py"
    module.touch()
    module.chmod(0o666)
    for _ in range(2):
        with pytest.raises(ConfigError, match="is not trusted"):
            search_code_folder(config)
        assert str(config.folder) not in sys.path
    module.chmod(0o600)
    for _ in range(2):
        search_code_folder(config)
    assert sys.path.count(str(config.folder)) == 1
