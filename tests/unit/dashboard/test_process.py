"""Which addresses and settings a dashboard accepts. The proof of attacks runs a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from vesper.config.settings import config_from, default_config
from vesper.dashboard.access.caller import Role
from vesper.dashboard.process import make_access
from vesper.effects.settings import ConfigError


def test_an_open_address_needs_authentication(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = default_config(tmp_path)
    assert make_access(config, "127.0.0.1", False).local.roles == {Role.VIEWER}
    assert make_access(config, "::1", True).local.roles == set(Role)
    for allow_changes in (False, True):
        with pytest.raises(ConfigError, match="other machines can reach this address"):
            make_access(config, "0.0.0.0", allow_changes)  # it is refused
    monkeypatch.setenv("VESPER_SECRET_ANN", "k" * 20)
    config = config_from({"serve": {"keys": [{"name": "ann", "secret": "ANN"}]}}, tmp_path)
    with pytest.raises(ConfigError, match="log in instead"):
        make_access(config, "127.0.0.1", True)
    public = make_access(config, "0.0.0.0", False)  # callers authenticate
    assert public.credentials is not None
    assert not public.hosts
