"""The settings of secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vesper.effects.settings import Table

if TYPE_CHECKING:
    from vesper.effects.secrets.managers.client import Manager

_MANAGERS: Final = {
    "vault": ("vault", "Vault"),
    "aws": ("aws", "AwsSecrets"),
    "gcp": ("gcp", "GcpSecrets"),
    "azure": ("azure", "AzureSecrets"),
}
"""Modules and classes of managers by source, imported when one is named."""
_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class SecretSettings:
    """`[secrets]`."""

    source: str
    prefix: str = "VESPER_SECRET_"
    """Of environment variables: `stripe_key` is `VESPER_SECRET_STRIPE_KEY`."""
    path: Path | None = None
    """Of files: the folder with one file for each secret."""
    function: str | None = None
    """`module:function`, which takes the name and gives the text, or None where there is none."""
    ttl: float = 60.0
    """Seconds after which the source is asked again, so that a new text is picked up."""
    timeout: float = 10.0
    """Seconds that `function` or a manager may take."""
    manager: Manager | None = None
    """The source in another system."""

    @classmethod
    def from_table(cls, name: str, table: Table, base: Path | None = None) -> SecretSettings:  # noqa: ARG003
        """Read the settings; `name` is unused, because there is one such table. A relative `path` is below `base`."""
        source = table.choice("source", ("environment", "file", "python", *_MANAGERS), "environment")
        for setting, of in (("prefix", "environment"), ("function", "python")):
            if setting in table and source != of:
                raise table.error(setting, f'only `source = "{of}"` has this setting')
        if "path" in table and source not in ("file", "vault"):
            raise table.error("path", 'only `source = "file"` and `source = "vault"` have this setting')
        if "timeout" in table and source in ("environment", "file"):
            raise table.error("timeout", "only functions and managers have this setting")
        timeout = table.seconds("timeout", 10.0)
        path = None
        if source == "file":
            path = Path(table.text("path"))
            if not path.is_absolute():
                if base is None:
                    raise table.error("path", f"an absolute path is expected, not `{path}`")
                path = base / path
            if not path.is_dir():
                raise table.error("path", f"there is no folder `{path}`")
        function = table.text("function") if source == "python" else None
        if function is not None and not _FUNCTION.fullmatch(function):
            raise table.error("function", f"`module:function` is expected, not `{function}`")
        found = cls(
            source,
            table.text("prefix", "VESPER_SECRET_"),
            path,
            function,
            table.seconds("ttl", 60.0),
            timeout,
            _manager(source, table, base, timeout) if source in _MANAGERS else None,
        )
        table.done()
        return found


def _manager(source: str, table: Table, folder: Path | None, timeout: float) -> Manager:
    module, name = _MANAGERS[source]
    found: Manager = getattr(import_module(f"vesper.effects.secrets.managers.{module}"), name)(table, folder, timeout)
    return found
