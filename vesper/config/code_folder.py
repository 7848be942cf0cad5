"""Import of modules that a configuration names and that lie beside its file."""

from __future__ import annotations

import sys

from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.storage.trust import distrust


def search_code_folder(config: Config) -> None:
    """Add the folder of the configuration to the import path, if the configuration names modules.

    Neither `vesper` nor `python -m vesper` searches it. The folder comes last, so that its modules do not shadow
    installed packages. Raises `ConfigError` for a module that another user may have written.
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
