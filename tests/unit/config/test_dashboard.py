"""The table `[dashboard]`: defaults, and settings that would open it too far."""

from __future__ import annotations

from pathlib import Path

import pytest

from vesper.config.settings import config_from
from vesper.effects.settings import ConfigError


def test_defaults_are_this_machine_and_one_scope_for_each_role(tmp_path: Path) -> None:
    found = config_from({}, tmp_path).dashboard
    assert (found.host, found.port, found.origins) == ("127.0.0.1", 8001, ())
    assert found.roles == {"viewer": ("vesper:view",), "operator": ("vesper:operate",), "author": ("vesper:author",)}


@pytest.mark.parametrize(
    "table, message",
    [
        ({"roles": {"operator": []}}, "every caller could change things"),
        ({"roles": {"owner": ["x"]}}, "owner"),
        ({"origins": ["ops.example"]}, "an origin such as"),
        ({"origins": ["https://*.example"]}, "an origin such as"),
        ({"port": 70_000}, "port"),
        ({"hosts": ["x"]}, "hosts"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, table: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config_from({"dashboard": table}, tmp_path)
