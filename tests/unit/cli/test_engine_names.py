"""`direct` names the second engine on the command line and in text; JSON names its tiers."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.support.nodes import PAYMENT_DECISION
from vesper.cli.engine_names import engine_label
from vesper.cli.main import vesper
from vesper.cli.settings import read_settings, settings_folder

NODE = str(PAYMENT_DECISION)
INPUTS = [
    *("-i", "amount=50.00", "-i", "balance=100.00", "-i", "currency=USD", "-i", "country=DE"),
    *("-i", "user_age_days=400"),
]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(vesper, arguments)


def test_direct_is_the_first_tier_of_the_direct_engine() -> None:
    done = invoke("run", NODE, *INPUTS, "--engine", "direct", "--format", "json")
    assert done.exit_code == 0, done.output
    assert done.stdout == invoke("run", NODE, *INPUTS, "--engine", "interp", "--format", "json").stdout


def test_text_says_direct_and_json_names_the_tier() -> None:
    text = invoke("run", NODE, *INPUTS, "--engine", "both").stdout
    assert "\npython:\n" in text
    assert "\ndirect:\n" in text
    assert "interp" not in text
    found = json.loads(invoke("run", NODE, *INPUTS, "--engine", "both", "--format", "json").stdout)
    assert list(found["outcomes"]) == ["python", "interp"]
    assert [engine_label(name) for name in ("python", "interp", "jit")] == ["python", "direct", "jit"]


def test_direct_is_all_tiers_where_several_engines_are_listed() -> None:
    timed = invoke("bench", NODE, "--engine", "direct", "--seconds", "0.01", "--no-first-call", "--format", "json")
    assert list(json.loads(timed.stdout)["engines"]) == ["interp", "jit"]
    verified = invoke("verify", NODE, "--engine", "direct", "--max-examples", "5", "--format", "json")
    tiers = json.loads(verified.stdout)["engines"]
    assert tiers == ["python", "interp", "interp-optimised", "interp-unoptimised", "jit"]


def test_the_settings_of_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vesper.config.locate._nearest_file", lambda _: None)
    found = read_settings(None)
    assert (found.path, found.grants) == (None, ())
    assert (found.folder, settings_folder(None)) == (tmp_path, tmp_path)
    file = tmp_path / "vesper.toml"
    file.write_text("workers = 3\n", encoding="utf-8")
    assert (read_settings(file).path, read_settings(file).workers) == (file, 3)
    file.write_text("workers = \n", encoding="utf-8")
    with pytest.raises(click.ClickException, match="this is no TOML"):
        read_settings(file)
