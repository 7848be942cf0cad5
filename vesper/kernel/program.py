"""The kernel's program, as `make setup` builds it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from vesper.config.kernel import KernelSettings
from vesper.config.keys import read_keys
from vesper.effects.secrets.settings import SecretSettings
from vesper.kernel.errors import KernelNotStarted

_PROGRAM = Path(__file__).parent / "bin" / "vesper-kernel"


def find_program() -> str:
    """Return the path of the program. Raises `KernelNotStarted`."""
    if os.access(_PROGRAM, os.X_OK):
        return str(_PROGRAM)
    found = shutil.which(_PROGRAM.name)
    if found is None:
        raise KernelNotStarted(
            f"the program `{_PROGRAM.name}` is neither at {_PROGRAM} nor on PATH: `make setup` in a clone of the "
            "repository builds it (or `make vesper/kernel/bin/vesper-kernel` it alone)"
        )
    return found


def environment_of(settings: KernelSettings, secrets: SecretSettings | None) -> dict[str, str]:
    """Return all settings as the program reads them; `secrets` is the store of its keys, the environment by default.

    Raises `ConfigError`.
    """
    found = settings.environment()
    if settings.keys:
        from vesper.effects.secrets.store import open_secrets

        secret = open_secrets(secrets or SecretSettings("environment")).text
        rows = read_keys(settings.keys, secret, "kernel.keys")
        found["VESPER_KERNEL_KEYS"] = json.dumps([{"name": row["name"], "sha256": row["sha256"]} for row in rows])
    return found


def make_store_folder(settings: KernelSettings) -> None:
    """Make the folder of the store, readable by its owner only."""
    if settings.store.startswith("sqlite:"):
        Path(settings.store.removeprefix("sqlite:")).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
