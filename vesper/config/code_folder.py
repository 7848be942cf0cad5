"""Modules that a configuration names, beside its file."""

from __future__ import annotations

import sys

from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.storage.trust import distrust


def search_code_folder(config: Config) -> None:
    """Let imports find modules beside the configuration, which neither `vesper` nor `python -m vesper` searches.

    The folder comes last, so that its modules do not shadow installed packages. Raises `ConfigError` for a module that
    may be another user's.
    """
    secrets = config.parts.secrets
    names_code = bool(config.modules) or (secrets is not None and secrets.function is not None)
    if not names_code:
        return
    for module in config.modules:
        first, whole = module.partition(".")[0], module.replace(".", "/")
        for name in (f"{first}.py", f"{first}/__init__.py", f"{whole}.py"):
            file = config.folder / name
            if file.exists() and (reason := distrust(file)) is not None:
                raise ConfigError("effects.modules", reason)
    if str(config.folder) not in sys.path:
        sys.path.append(str(config.folder))
