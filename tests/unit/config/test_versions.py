"""The tables `[versions.NAME]`: what they may say."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from vesper.config.settings import config_from
from vesper.config.versions import VersionSettings
from vesper.effects.settings import ConfigError


def read(**values: object) -> VersionSettings:
    return config_from({"versions": {"pay": values}}, Path()).versions["pay"]


def test_a_name_has_a_lead_and_may_have_a_candidate() -> None:
    assert read(lead="pay_v1") == VersionSettings("pay_v1")
    whole = {"lead": "pay_v3", "candidate": "pay_v4", "share": "10 %", "until": date(2030, 1, 31)}
    assert read(**whole) == VersionSettings("pay_v3", "pay_v4", 0.1, date(2030, 1, 31))


@pytest.mark.parametrize(
    "values,said",
    [
        ({}, "lead"),
        ({"lead": "pay"}, "a version of `pay` is expected, such as `pay_v1`"),
        ({"lead": "sale_v1"}, "a version of `pay` is expected"),
        ({"lead": "pay_v1", "candidate": "pay_v1"}, "leads already"),
        ({"lead": "pay_v1", "share": "10 %"}, "there is none"),
        ({"lead": "pay_v1", "candidate": "pay_v2", "share": "0 %"}, "a share as a text"),
        ({"lead": "pay_v1", "candidates": "pay_v2"}, "no such setting"),
    ],
)
def test_mistakes_are_refused(values: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(**values)
