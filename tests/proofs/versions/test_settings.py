"""A sample of `make test-pythons` with the interpreter that runs the tests: settings of the host do not matter."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.proofs.versions.run import ALL_ODD, PLAIN, ROOT, SETTINGS, Setting, difference, environment, turkish_locale

_FEW = ("--every", "13", "--programs", "2", "--inputs", "8")


@cache
def _locales() -> Path | None:
    return turkish_locale(ROOT / ".vesper" / "locales")


@cache
def _fingerprint(setting: Setting) -> str:
    done = subprocess.run(
        [sys.executable, *setting.flags, "-m", "tests.proofs.versions.fingerprint", *_FEW],
        cwd=ROOT, env=environment(setting, _locales()), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


SAMPLE = [each for each in SETTINGS if each.name in ("decimal context of 3 digits", "C locale, no UTF-8", "-O")]
"""The others are in force together in the last one; `make test-pythons` takes each by itself."""


@pytest.mark.parametrize("setting", [*SAMPLE, ALL_ODD], ids=lambda setting: setting.name)
def test_a_setting_of_the_host_changes_nothing(setting: Setting) -> None:
    plain, odd = _fingerprint(PLAIN), _fingerprint(setting)
    assert plain.count("\n") > 7
    assert difference(plain, odd) is None


def test_the_settings_are_in_force() -> None:
    """Or the comparisons above would compare nothing."""
    state = _fingerprint(ALL_ODD).splitlines()[-1]
    assert "prec=3 ROUND_UP" in state
    assert "tr_TR" in state
    assert "+14" in state


def test_a_difference_is_seen() -> None:
    assert difference("1 a_v1 aa\n# 3.11", "1 a_v1 aa\n# 3.12") is None
    assert difference("1 a_v1 aa\n2 b_v1 bb", "1 a_v1 aa\n2 b_v1 bc") == "differs: b_v1"
    assert difference("1 a_v1 aa", "1 a_v1 aa\n2 b_v1 bb") == "other nodes"
